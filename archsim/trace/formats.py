"""The formats of networks that `--net` reads: one table, a row for each.

The ending of a path decides; where several formats share an ending, the first whose `known_by` recognises how the file begins. A
reader returns a `Trace` and raises InputError, MissingFile, MissingExtra or Unsupported. To add a format, write its reader and
its row; `archsim/base/files.py` has the row of what a file of it may hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from archsim.base.errors import ArgumentError, InputError, nearest
from archsim.base.files import named_file, read_head

if TYPE_CHECKING:
    from archsim.trace.trace import Trace

Sizes = tuple[tuple[str, int], ...]  # of symbols, by the names that a user gave
Stamp = tuple[int, ...]  # of a file, see `stamp_of`
Reader = Callable[[Path, Mapping[str, int]], "Trace"]
HEAD = 1 << 16  # bytes from which a format is recognised


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkFormat:
    """A format of networks.

    name: as messages call it
    suffixes: endings of the names of its files
    reader: "module:function", called with the path and with the sizes of symbols by the file's own names. It uses those
        sizes that it needs to know the shapes, leaves symbols that are still free in the trace to its caller, and raises
        ArgumentError (`unknown_symbol`) for a name that the file does not have
    operators: "module:function", called as the reader is, which also says what became of the file's operators
    eager: "module:function", called as the reader is, for the network op by op where its attention is not fused; None for a
        file that has no such form
    known_by: "module:function", called with the first bytes of a file, where other formats have the same ending
    """

    name: str
    suffixes: tuple[str, ...]
    reader: str
    known_by: str = ""
    operators: str = ""
    eager: str = ""

    def read(self, path: Path, sizes: Mapping[str, int]) -> Trace:
        """The trace of a file."""
        return cast(Reader, _function(self.reader))(path, sizes)

    def read_eager(self, path: Path, sizes: Mapping[str, int]) -> Trace | None:
        """The trace without fused attention, of formats that have one of their own."""
        return cast("Trace | None", _function(self.eager)(path, sizes)) if self.eager else None

    def mapping(self, path: Path, sizes: Mapping[str, int]) -> tuple[Trace | None, list[Any]]:
        """The trace, None where operators are refused, and what became of each operator; of formats that have some."""
        if not self.operators:
            return self.read(path, sizes), []
        found: tuple[Trace | None, list[Any]] = _function(self.operators)(path, sizes)
        return found

    def has(self, path: Path) -> bool:
        """Whether a file that ends as this format's do is one of them."""
        return not self.known_by or bool(_function(self.known_by)(read_head(path, HEAD)))


FORMATS: tuple[NetworkFormat, ...] = (
    NetworkFormat(name="trace", suffixes=(".jsonl", ".jsonl.gz"), reader="archsim.trace.file:read"),
    NetworkFormat(name="network of this program", suffixes=(".held",), reader="archsim.trace.file:read_held"),
    NetworkFormat(name="Caffe", suffixes=(".prototxt",), reader="archsim.trace.readers.caffe:read"),
    NetworkFormat(name="ONNX", suffixes=(".onnx",), reader="archsim.trace.readers.read:read",
                  operators="archsim.trace.readers.read:of_onnx"),
    NetworkFormat(name="Chakra", suffixes=(".et",), reader="archsim.trace.chakra.reader:read",
                  operators="archsim.trace.chakra.reader:of_chakra"),
    NetworkFormat(name="Chakra as JSON", suffixes=(".json",), reader="archsim.trace.chakra.reader:read",
                  operators="archsim.trace.chakra.reader:of_chakra", known_by="archsim.trace.chakra.forms:begins_as_chakra"),
    NetworkFormat(name="profile of PyTorch or onnxruntime", suffixes=(".json", ".json.gz"),
                  reader="archsim.trace.profiles.reader:read_network", operators="archsim.trace.profiles.reader:of_profile",
                  known_by="archsim.trace.profiles.reader:begins_as_profile"),
    NetworkFormat(name="config.json of a Hugging Face model", suffixes=(".json",),
                  reader="archsim.trace.huggingface.network:read",
                  known_by="archsim.trace.huggingface.network:begins_as_config",
                  eager="archsim.trace.huggingface.network:read_eager"),
)  # fmt: skip
TRACE = FORMATS[0]
SUFFIXES = tuple(dict.fromkeys(suffix for format in FORMATS for suffix in format.suffixes))
FRAMEWORKS = (".pt", ".pth", ".pt2", ".h5", ".keras", ".pb", ".tflite", ".safetensors")  # files of weights, or of their own kind


def format_of(path: Path) -> NetworkFormat:
    """The format of a file. One with another ending is a trace.

    Raises InputError for a framework's own file, and where only the content can tell, and does not.
    """
    if path.name.lower().endswith(FRAMEWORKS):
        raise InputError(str(path), "holds no graph that is read here; export it to ONNX, or name a transformer's config.json")
    named_file(str(path), stream=True)
    able = [format for format in FORMATS if path.name.lower().endswith(format.suffixes)]
    if not able:
        return TRACE
    found = next((format for format in able if format.has(path)), None)
    if found is None:
        kinds = ", ".join(format.name for format in able)
        raise InputError(str(path), f"is no network that is read here; files with this ending may be: {kinds}")
    return found


def is_path(text: str) -> bool:
    """Whether a text names a file: it has a slash, or ends as one of a format does."""
    return "/" in text or "\\" in text or text.lower().endswith(SUFFIXES + FRAMEWORKS)


def stamp_of(net: str) -> Stamp:
    """What tells one content of a network's file from the next: its time of change [ns], size [B] and number; of a name nothing.
    """
    if not is_path(net):
        return ()
    try:
        found = Path(net).stat()
    except (OSError, ValueError):  # reading it says what is wrong
        return ()
    return (found.st_mtime_ns, found.st_size, found.st_ino)


def unknown_symbol(path: object, name: str, known: Mapping[str, object] | tuple[str, ...]) -> ArgumentError:
    """The error for a size of a symbol that a network does not have."""
    near = nearest(name, known) or [*known]
    has = f"nearest: {', '.join(near)}" if near else "none of its sizes is free"
    return ArgumentError(f"bind: {path} has no symbol {name!r}; {has}")


def with_symbols(trace: Trace, sizes: Mapping[str, int], said: object) -> Trace:
    """The trace, which has every symbol that is sized. Raises ArgumentError, in which it is called `said`."""
    for name in sizes:
        if not trace.symbol_called(name):
            raise unknown_symbol(said, name, trace.free_symbols)
    return trace


def _function(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
