"""What changes from one stack to another, key by key, and from one release of its parts to the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from archsim.base.errors import refuse
from archsim.stack.compose import Assigned, Composition, document, folder, part_versions
from archsim.stack.key import Path, read

# What a step changes = the keys that say so; what none of them names is left to the last step.
STEPS: Mapping[str, tuple[str, ...]] = {
    "tf32": ("tf32", "fp16_arithmetic"),
    "kernels of the libraries": ("menus", "efficiency", "conv.algorithms", "conv.tensor", "conv.architectures"),
    "channels last": ("conv.layout_copies",),
    "chains in one kernel": ("fusion", "fused", "attention.fused", "passes", "conv.bias", "linear_bias"),
    "calls of the host": ("host", "host_calls", "nested_calls", "synchronous"),
    "CUDA graph": ("graphs",),
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


# ------------------------------------------------------------------------------------------------------------- releases

NONE = "none"  # the effect of a change that no key of a stack says
REQUIRED = ("version", "changed", "effect", "source")
OPTIONAL = ("date", "block")


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One change of one release.

    part: the component that it belongs to, on its `axis`; name: what its maker calls it
    date: year, or year and month; empty where it is not recorded
    block: the version of the component's file from which on stacks have it; empty: all
    effect: the key of a stack that says it, `none` where the model has no term for it
    """

    part: str
    axis: str
    name: str
    version: str
    changed: str
    effect: str
    source: str
    date: str = ""
    block: str = ""


@cache
def releases() -> tuple[Release, ...]:
    """All that are recorded, by component and in the order of their files. Raises InputError with every problem of a file."""
    files = sorted((f for f in folder().joinpath("releases").iterdir() if f.name.endswith(".toml")), key=lambda f: f.name)
    found: list[Release] = []
    for file in files:
        table, part = document(file), file.name.removesuffix(".toml")
        problems = [] if table.get("schema") == 1 else [f"schema: must be 1, is {table.get('schema')!r}"]
        for i, row in enumerate(table.get("release", [])):
            problems += [f"release[{i}].{key}: is missing" for key in REQUIRED if not row.get(key)]
            problems += [f"release[{i}].{key}: unknown key; known: {', '.join((*REQUIRED, *OPTIONAL))}"
                         for key in row if key not in (*REQUIRED, *OPTIONAL)]  # fmt: skip
        refuse(file, problems)
        found += [Release(part=part, axis=table["axis"], name=table["name"], **row) for row in table["release"]]
    return tuple(found)


def of_parts(parts: Mapping[str, str]) -> tuple[Release, ...]:
    """The releases whose changes a stack of these parts has: those of the blocks up to the version of each part.

    >>> [r.version for r in of_parts({"library": "cudnn 5.0"})]
    ['4.0', '5.0']
    """
    return tuple([r for r in releases() if _has(parts.get(r.axis, ""), r)])


def _has(reference: str, release: Release) -> bool:
    name, _, version = reference.partition(" ")
    if name != release.part:
        return False
    known = part_versions(release.axis, name)
    return not release.block or known.index(release.block) <= known.index(version)
