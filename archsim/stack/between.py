"""The way from one stack to another: what differs, in groups that each say one thing, with the source of every value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from archsim.stack.compose import Assigned, Composition
from archsim.stack.read import Path, read

# What a step changes = the keys that say so; what none of them names is left to the last step.
STEPS: Mapping[str, tuple[str, ...]] = {
    "tf32": ("tf32", "without_tensor_cores", "fp16_arithmetic"),
    "kernels of the libraries": ("menus", "efficiency", "conv.algorithms", "conv.few_channels", "conv.tensor",
                                 "conv.architectures"),
    "channels last": ("conv.layout_copies",),
    "chains in one kernel": ("fusion", "fused", "attention.fused", "passes", "conv.bias", "linear_bias",
                             "short_row"),
    "calls of the host": ("host", "host_calls", "nested_calls", "stall", "stalls"),
    "CUDA graph": ("replays", "graphs"),
}  # fmt: skip
REST = "everything else"
SILENT = ("reserved", "kind", "framework", "architectures", "vendor")  # change no time


@dataclass(frozen=True, slots=True, kw_only=True)
class StackStep:
    """A stack on the way: `title` says what it takes over from the other one, `sources` where these values are from."""

    title: str
    stack: Any
    keys: tuple[str, ...]
    sources: tuple[str, ...]


def between(record: type, before: Composition, after: Composition) -> list[StackStep]:
    """The steps that differ, in the order of `STEPS`; the last one is the other stack."""
    differing = {path for path in before.assigned.keys() | after.assigned.keys()
                 if _value(before, path) != _value(after, path) and path[0] not in SILENT}  # fmt: skip
    steps: list[StackStep] = []
    values = dict(before.assigned)
    for title in (*STEPS, REST):
        mine = sorted(path for path in differing if _step_of(path) == title)
        if not mine:
            continue
        for path in mine:
            if path in after.assigned:
                values[path] = after.assigned[path]
            else:
                values.pop(path, None)
        composed = Composition(id=after.id, parts=after.parts, assigned=values)
        stack, problems = read(record, composed.table(), id=after.id)
        if stack is None:
            raise ValueError("; ".join(problems))
        steps.append(StackStep(title=title, stack=stack.filled(), keys=_heads(mine), sources=_sources(mine, before, after)))
    return steps


def _value(composed: Composition, path: Path) -> Any:
    found = composed.assigned.get(path)
    return None if found is None else found.value


def _step_of(path: Path) -> str:
    at = ".".join(path)
    return next((title for title, keys in STEPS.items() if any(at == key or at.startswith(f"{key}.") for key in keys)), REST)


def _heads(paths: Sequence[Path]) -> tuple[str, ...]:
    """The keys that changed, without the names of a table's entries."""
    return tuple(dict.fromkeys(".".join(path[:2]) if path[0] in ("conv", "attention") else path[0]
                               for path in paths))  # fmt: skip


def _sources(paths: Sequence[Path], before: Composition, after: Composition) -> tuple[str, ...]:
    """The sources of the new values; of the old ones where a key is only dropped."""
    found: list[Assigned] = [after.assigned[path] for path in paths if path in after.assigned]
    found = found or [before.assigned[path] for path in paths if path in before.assigned]
    return tuple(dict.fromkeys(one.source for one in found if one.source))
