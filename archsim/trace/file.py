"""Trace files: JSON Lines, a header and then one op per line; `.gz` is inflated.

    {"schema": "archsim-trace/1", "name": "tiny", "inputs": {"data": ["N", 3, 32, 32]}, "dtype": "fp32", "source": ""}
    {"op": "conv2d", "name": "conv1", "in": ["data"], "out": ["N", 16, 30, 30], "kernel": [3, 3]}

Files are not trusted: they are read with limits, and all problems are reported at once, with line numbers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path

from archsim.base.errors import InputError
from archsim.base.files import data_folder, read_text
from archsim.base.limits import LIMITS
from archsim.base.naming import resolve
from archsim.trace.attributes import written
from archsim.trace.check import SCHEMA, trace_of
from archsim.trace.formats import SUFFIXES, Sizes, format_of, is_path, unknown_symbol
from archsim.trace.huggingface import catalog as models
from archsim.trace.jsonlines import parse
from archsim.trace.trace import Op, Trace

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
    for name in sizes:
        if not trace.symbol_called(name):
            raise unknown_symbol(trace.name, name, trace.free_symbols)
    return trace


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
