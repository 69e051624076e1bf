"""From a `ModelFile` to a `Trace`, at given sizes or with symbolic shapes; and what became of each operator of the file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from archsim.base.errors import ArgumentError, InputError, Unsupported
from archsim.trace.dims import BATCH, SEQUENCE, short
from archsim.trace.formats import unknown_symbol
from archsim.trace.readers.draft import Draft, NoProduct, merged
from archsim.trace.readers.emit import emit
from archsim.trace.readers.graph import NodeGraph
from archsim.trace.readers.infer import MOST_WRITTEN, infer, names_in, refused, too_many_written
from archsim.trace.readers.model import REFUSED, ModelFile, checked
from archsim.trace.readers.patterns import apply_patterns
from archsim.trace.trace import Trace
from archsim.trace.values import LONGEST_NAME, printable

BATCH_PROBES = (1009, 1013)  # primes that no layer has as a size
PROBES = ((61, 67), (71, 73), (79, 83), (89, 97), (101, 103), (107, 109), (113, 127), (131, 137))  # small: tables have ends
MOST_SYMBOLS = len(PROBES)
MOST_NAMED = 12  # symbols that a message names
SEQUENCES = ("sequence", "seq", "tokens", "time", "length")  # beginnings of what files call the tokens of a sequence
BATCHES = ("batch",)  # and of its samples, where that is not the first size


def trace_of(model: ModelFile, sizes: Mapping[str, int]) -> Trace:
    """The trace of a model. `sizes` are those of its symbols by its own names; the batch stays free where the graph allows it.

    Raises InputError, Unsupported, or ArgumentError for sizes that are missing, or of nothing.
    """
    symbols = symbols_of(model)
    for name in sizes:
        if name not in symbols and name not in symbols.values():
            raise unknown_symbol(model.path, name, tuple(symbols))
    given = {name: size for name, own in symbols.items() for key, size in sizes.items() if key in (name, own)}
    free = {name: own for name, own in symbols.items() if name not in given or own == BATCH}
    fixed = {name: size for name, size in given.items() if name not in free}
    batch = next((name for name, own in free.items() if own == BATCH), None)
    if len(free) > MOST_SYMBOLS:
        raise _unbound(model, free, f"has {len(free)} free symbols")
    try:
        return _at_probes(model, free, fixed)
    except NoProduct as problem:
        others = {name: own for name, own in free.items() if own != BATCH}
        if others or batch is None or batch not in given:
            raise _unbound(model, others or free, f"{short(str(problem))} does not grow as a product of them") from None
        return _trace(model, {}, [_draft(model, fixed | {batch: given[batch]})], [{}])
    except Unsupported as problem:
        raise InputError(model.path, str(problem)) from None
    except InputError as problem:
        others = {name: own for name, own in free.items() if own != BATCH}
        if others:
            raise _unbound(model, others, f"with numbers in their place {problem.problems[0]}") from None
        raise


def symbols_of(model: ModelFile) -> dict[str, str]:
    """The free sizes of a model's inputs, by its names: N for the batch, T for tokens, else a name of a symbol."""
    texts = dict.fromkeys(dim for dims in model.inputs.values() for dim in dims if isinstance(dim, str))
    if len(texts) > MOST_WRITTEN:
        raise too_many_written(model.path)
    names = {text: names_in(text) for text in texts}
    every = [dim for dims in model.inputs.values() for dim in dims if isinstance(dim, str) and names[dim] == [dim]]
    called = [dim for dim in every if dim.lower().startswith(BATCHES) or dim.lower() in ("n", "b", "bs")]
    first = [dims[0] for dims in model.inputs.values() if dims and dims[0] in every and not _is_sequence(str(dims[0]))]
    candidates = called or first
    batch = Counter(candidates).most_common(1)[0][0] if candidates else None
    found: dict[str, str] = {} if batch is None else {str(batch): BATCH}
    for text in texts:
        for name in names[text]:
            if name not in found:
                found[name] = _symbol(name, set(found.values()))
        if len(found) > MOST_WRITTEN:
            raise too_many_written(model.path)
    return found


def _is_sequence(name: str) -> bool:
    """Whether a file's name of a size is that of tokens or steps."""
    return name.lower().startswith(SEQUENCES) or name.lower() == "t"


def _symbol(name: str, taken: set[str]) -> str:
    """A name that a trace can have for a symbol."""
    if SEQUENCE not in taken and _is_sequence(name):
        return SEQUENCE
    plain = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name)[:24] or "Size"
    plain = plain if plain[0].isalpha() else f"S{plain}"
    plain, number = plain[0].upper() + plain[1:], 1
    found = f"{plain}_size" if plain in (BATCH, SEQUENCE) else plain
    while found in taken:
        number += 1
        found = f"{plain}_{number}"
    return found


def _at_probes(model: ModelFile, free: Mapping[str, str], fixed: Mapping[str, int]) -> Trace:
    if not free:
        return _trace(model, free, [_draft(model, fixed)], [{}])
    probes: list[dict[str, int]] = [{}, {}]
    numbers: Iterator[tuple[int, int]] = iter(PROBES)
    for own in free.values():
        for probe, value in zip(probes, BATCH_PROBES if own == BATCH else next(numbers), strict=True):
            probe[own] = value
    drafts = [_draft(model, {**fixed, **{name: probe[own] for name, own in free.items()}}) for probe in probes]
    return _trace(model, free, drafts, probes)


def trace_at_batches(models: Sequence[ModelFile], batches: Sequence[int]) -> Trace:
    """The trace of a model that was written at one batch, or at two, between which it shows what grows with the batch."""
    drafts = [_draft(model, {}) for model in models]
    if len(drafts) == 1:
        return _trace(models[0], {}, drafts, [{}])
    return _trace(models[0], {"batch": BATCH}, drafts, [{BATCH: size} for size in batches])


def _draft(model: ModelFile, sizes: Mapping[str, int]) -> Draft:
    """The ops at these sizes."""
    graph = NodeGraph(infer(model, sizes))
    draft = Draft(model.path)
    for name in model.inputs:
        draft.input(name, graph.shape(name))
    apply_patterns(graph)
    graph.without_dead()
    emit(graph, draft)
    for name in graph.outputs:
        if name not in draft.names:
            raise InputError(model.path, f"its output {short(name)} is made by nothing that runs")
    draft.outputs = tuple(dict.fromkeys(draft.names[name] for name in graph.outputs))
    if not draft.ops:
        raise InputError(model.path, "computes nothing from its inputs")
    return draft


def _trace(model: ModelFile, free: Mapping[str, str], drafts: list[Draft], probes: list[dict[str, int]]) -> Trace:
    inputs, ops = merged(drafts, probes)
    read = {name for op in ops for name in op.inputs}
    return Trace(
        name=printable(model.name, LONGEST_NAME) or "model", source=model.source,
        inputs={name: dims for name, dims in inputs.items() if name in read} or inputs, dtype=model.dtype,
        ops=ops, outputs=drafts[0].outputs, symbols={own: name for name, own in free.items()},
    )  # fmt: skip


def _unbound(model: ModelFile, free: Mapping[str, str], why: str) -> ArgumentError:
    """The error for symbols that need a size, with the way out."""
    names = [printable(name, LONGEST_NAME) for name in [*free][:MOST_NAMED]]
    more = f" and {len(free) - len(names)} more" if len(free) > len(names) else ""
    ways = " ".join(f"--bind {name}=SIZE" for name in names)
    return ArgumentError(f"{model.path}: needs sizes for {', '.join(names)}{more}: {ways} ({why})")


# ----------------------------------------------------------------------------------------- what became of the operators

MAPPED, OWN, PARTLY, TRAFFIC, NOT_READ = "mapped", "registered", "partly memory traffic", "memory traffic", "refused"


class MappedOperator(NamedTuple):
    """An operator of a model: its nodes, and what became of them."""

    operator: str
    nodes: int
    status: str
    why: str = ""


def mapped_operators(model: ModelFile, sizes: Mapping[str, int]) -> tuple[Trace | None, list[MappedOperator]]:
    """The trace, None where operators are refused, and every operator of the model, those with the most nodes first.

    Raises what reading the model raises, but not for refused operators.
    """
    count = Counter(node.operator for node in model.nodes)
    if refused(model):
        return None, [_row(name, nodes, Counter(), Counter()) for name, nodes in count.most_common()]
    trace = trace_of(model, sizes)
    unknown, own = Counter[str](), Counter[str]()
    for op in trace.ops:
        if op.kind.op == "traffic":
            (own if getattr(op.kind, "own", 0) else unknown)[str(getattr(op.kind, "operator", ""))] += 1
    return trace, [_row(name, nodes, unknown, own) for name, nodes in count.most_common()]


def _row(name: str, nodes: int, unknown: Counter[str], own: Counter[str]) -> MappedOperator:
    if name in REFUSED:
        return MappedOperator(name, nodes, NOT_READ, REFUSED[name])
    if own[name]:
        return MappedOperator(name, nodes, OWN, "archsim.register_op says its work")
    if unknown[name]:
        status = TRAFFIC if unknown[name] >= nodes else PARTLY
        return MappedOperator(name, nodes, status, "no rule: each tensor once bounds its time")
    return MappedOperator(name, nodes, MAPPED)


def read(path: Path, sizes: Mapping[str, int]) -> Trace:
    """The trace of an ONNX file. Raises MissingExtra, MissingFile, InputError, Unsupported or ArgumentError."""
    return trace_of(_model(path), sizes)


def of_onnx(path: Path, sizes: Mapping[str, int]) -> tuple[Trace | None, list[MappedOperator]]:
    """The trace, and the operators of an ONNX file."""
    return mapped_operators(_model(path), sizes)


def _model(path: Path) -> ModelFile:
    from archsim.trace.readers.onnx_file import read_model

    return checked(read_model(path))
