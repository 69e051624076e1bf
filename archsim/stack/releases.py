"""What the releases of libraries and engines changed: `traces/stacks/releases`, one file for each, as data with sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from archsim.base.errors import InputError
from archsim.stack.compose import document, folder, part_versions

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
        if problems:
            raise InputError(str(file), problems)
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
