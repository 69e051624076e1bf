"""Trace files: JSON Lines, a header and then one op per line; `.gz` is inflated.

    {"schema": "archsim-trace/1", "name": "tiny", "inputs": {"data": ["N", 3, 32, 32]}, "dtype": "fp32", "source": ""}
    {"op": "conv2d", "name": "conv1", "in": ["data"], "out": ["N", 16, 30, 30], "kernel": [3, 3]}

Files are not trusted: they are read with limits, and all problems are reported at once, with line numbers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from archsim.base.errors import InputError, UnknownName
from archsim.base.files import LIMITS, data_folder, read_text
from archsim.base.naming import resolve
from archsim.trace.check import SCHEMA, trace_of
from archsim.trace.formats import SUFFIXES, Sizes, format_of, is_path, with_symbols
from archsim.trace.huggingface import catalog as models
from archsim.trace.jsonlines import parse
from archsim.trace.trace import BoundTrace, Op, Trace
from archsim.trace.values import written

FOLDER = "traces/nets"
LIMIT = LIMITS["network"]
HINT = f"a file of your own is named by a path that ends in {', '.join(each for each in SUFFIXES if each != '.held')}"


def load(path_or_name: str | Path | Traversable, sizes: Sizes = ()) -> Trace:
    """The network in a file of any of `formats.FORMATS`, or the shipped network or model of that name or alias.

    Text with a slash or with the suffix of a format is a path, everything else a name. `sizes` are those of symbols, by the names
    that the file has for them; a reader may leave them to its caller.
    Raises UnknownName, MissingFile, InputError, MissingExtra, Unsupported, or ArgumentError for a symbol that is not there.
    """
    if isinstance(path_or_name, str):
        name = canonical(path_or_name)
        if is_path(name):
            return format_of(Path(name)).read(Path(name), dict(sizes))
        if name not in names():
            from archsim.trace.huggingface.graph import graph_of

            return graph_of(models.find(name))
        return read(data_folder(FOLDER).joinpath(f"{name}.jsonl"), dict(sizes))
    return read(path_or_name, dict(sizes))


def read(place: Path | Traversable, sizes: Mapping[str, int]) -> Trace:
    """The trace in a trace file, whose symbols all stay free; `sizes` must be of some of them. Raises what `load` does."""
    try:
        text = read_text(place, LIMIT.size)
    except OSError as error:
        raise InputError(str(place), f"cannot be read ({error.strerror or error})") from None
    trace = loads(text, str(place))
    return with_symbols(trace, sizes, trace.name)


def loads(text: str, path: str = "trace") -> Trace:
    """The trace in `text`; errors call it `path`. Raises InputError."""
    unread: list[str] = []
    trace, problems = trace_of(parse(text, LIMIT.entries + 1, unread))
    if trace is None or unread:
        raise InputError(path, unread or problems)
    return trace


def names() -> list[str]:
    """The shipped networks, sorted."""
    folder = data_folder(FOLDER)
    if not folder.is_dir():
        return []
    found = (entry.name for entry in folder.iterdir())
    return sorted(name.removesuffix(".jsonl") for name in found if name.endswith(".jsonl"))


def dumps(trace: Trace) -> str:
    """The trace as text in canonical form: fixed order of keys, only attributes that differ from their defaults."""
    return "".join(_line(record) for record in [header_of(trace), *map(record_of, trace.ops)])


def digest(trace: Trace) -> str:
    """SHA-256 of a trace in its canonical form."""
    return hashlib.sha256(dumps(trace).encode()).hexdigest()


def canonical(name_or_path: str) -> str:
    """The shipped network or model that a name or an id of the Hugging Face hub stands for; a path as it is.

    Raises AmbiguousName, UnknownName, or MissingFile for the id of another model.

    >>> canonical("ResNet-50"), canonical("meta-llama/Llama-2-7b-hf")
    ('resnet_50', 'llama_2_7b')
    """
    if is_path(name_or_path) and name_or_path.lower() not in _with_slash():
        return models.find(name_or_path).name if models.is_hub(name_or_path) else name_or_path
    return resolve("network", name_or_path, list(dict.fromkeys((*names(), *models.names()))), aliases, HINT)


@cache
def aliases() -> Mapping[str, tuple[str, ...]]:
    """The other names of every shipped network and model, from the headers of their files."""
    found = dict(models.aliases())
    for name in names():
        with data_folder(FOLDER).joinpath(f"{name}.jsonl").open(encoding="utf-8") as stream:
            found[name] = (*json.loads(stream.readline()).get("aliases", []), *found.get(name, ()))
    return found


def _with_slash() -> set[str]:
    """The aliases that look like paths (`ViT-B/16`), in lower case."""
    return {alias.lower() for texts in aliases().values() for alias in texts if "/" in alias}


def header_of(trace: Trace) -> dict[str, object]:
    """The first line of a trace file."""
    header: dict[str, object] = {
        "schema": SCHEMA,
        "name": trace.name,
        "inputs": {name: list(dims) for name, dims in trace.inputs.items()},
        "dtype": trace.dtype,
        "source": trace.source,
    }
    optional: Mapping[str, object] = {
        "outputs": list(trace.outputs),
        "sizes": {name: {"usual": size.usual, "most": size.most} for name, size in trace.sizes.items()},
        "symbols": dict(trace.symbols),
        "aliases": list(trace.aliases),
        "notes": trace.notes,
        "left_out": trace.left_out,
    }
    return header | {key: value for key, value in optional.items() if value}


def record_of(op: Op) -> dict[str, object]:
    """The line of an op in a trace file."""
    record: dict[str, object] = {"op": op.kind.op, "name": op.name, "in": list(op.inputs), "out": list(op.shape)}
    if op.phase != "forward":
        record["phase"] = op.phase
    if op.parent:
        record["parent"] = op.parent
    if op.of:
        record["of"] = [list(dims) for dims in op.of]
    if op.shares:
        record["shares"] = op.shares
    return record | written(op.kind)


def _line(record: Mapping[str, object]) -> str:
    return json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n"


# ---------------------------------------------------------------------------------------- networks of a running program

HELD: dict[str, Trace] = {}
SUFFIX = ".held"


def hold(trace: Trace) -> str:
    """The name under which a trace is known from now on, in this process; equal traces have one name."""
    plain = "".join(c if c.isalnum() or c in "_-" else "_" for c in trace.name)[:60]
    name = f"{plain}.{digest(trace)[:8]}{SUFFIX}"
    HELD[name] = trace
    return name


def read_held(path: Path, sizes: Mapping[str, int]) -> Trace:
    """The trace of a name that `hold` gave. Raises UnknownName, or ArgumentError for a symbol that it does not have."""
    if str(path) not in HELD:
        raise UnknownName("network", str(path), [*HELD], "a network of a running program is known in its own process only")
    return with_symbols(HELD[str(path)], sizes, HELD[str(path)].name)


# --------------------------------------------------------------------------------------------- networks to be looked at


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownNetwork:
    """A network, None where its file has operators that are not read, and the operators of its file."""

    name: str
    trace: Trace | None
    bound: BoundTrace | None
    sizes: Mapping[str, int]
    operators: list[Any]

    def raise_refused(self) -> None:
        """Raise InputError where there is no network."""
        if self.trace is None:
            refused = [row for row in self.operators if row.status == "refused"]
            raise InputError(self.name, f"has operators that are not read: {', '.join(row.operator for row in refused)}")


def network_of(name: str, sizes: Mapping[str, int]) -> ShownNetwork:
    """The network of a name or a path, with the sizes that were given for the symbols of its file."""
    from archsim.trace.formats import format_of, is_path

    name = canonical(name)
    operators: list[Any] = []
    trace: Trace | None
    if is_path(name):
        trace, operators = format_of(Path(name)).mapping(Path(name), dict(sizes))
    else:
        trace = load(name, tuple(sizes.items()))
    if trace is None:
        return ShownNetwork(name=name, trace=None, bound=None, sizes=sizes, operators=operators)
    symbols = dict.fromkeys(trace.unsized, 1)
    symbols |= {symbol: size for key, size in sizes.items() if (symbol := trace.symbol_called(key))}
    return ShownNetwork(name=name, trace=trace, bound=trace.bind(**symbols), sizes=symbols, operators=operators)
