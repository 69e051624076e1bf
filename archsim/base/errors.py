"""The errors that archsim raises on purpose, and the exit code that each one means on the command line.

The codes follow the BSD `sysexits` convention where it has one; DESIGN's table of codes is `EXIT` below.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import PurePath

EXIT = {
    "ok": 0,
    "bound missed": 1,
    "usage": 2,
    "bad input": 65,
    "missing file": 66,
    "missing extra": 69,
    "defect": 70,
    "interrupted": 130,
}


LONGEST_SHOWN = 100  # characters of a name in a message; a longer one is cut
MEANT = ("memory.", "sm.", "core.")  # parts of a device whose keys people mean who name no part
LONGEST_PROBLEM = 1000  # characters of one problem of a file


class ArchsimError(Exception):
    """Base of every error that a user can cause; the message is meant for the user, without a traceback."""

    exit_code = EXIT["usage"]


def _cut(problem: str) -> str:
    """A sentence that may quote a file, not longer than a reader reads."""
    return problem if len(problem) <= LONGEST_PROBLEM else f"{problem[: LONGEST_PROBLEM - 3]}..."


class InputError(ArchsimError):
    """A file (or what stands for one) whose content cannot be used.

    Collects every problem that was found, so that one run tells all of them. `problems` are sentences that
    start with the place inside the file (`sm.count: ...`, `line 7: ...`); `hint` is a way out of all of them.
    """

    exit_code = EXIT["bad input"]
    most_shown = 50

    def __init__(self, path: str | PurePath, problems: str | Iterable[str], hint: str = "") -> None:
        self.path, self.hint = str(path), hint
        self.problems: tuple[str, ...] = tuple(map(_cut, (problems,) if isinstance(problems, str) else problems))
        super().__init__(self.path, self.problems)

    def __str__(self) -> str:
        if len(self.problems) == 1:
            return f"{self.path}: {self.problems[0]}"
        more = len(self.problems) - self.most_shown
        shown = [*self.problems[: self.most_shown], *([f"and {more} more"] if more > 0 else []), *filter(None, [self.hint])]
        return "\n".join([f"{self.path}: {len(self.problems)} problems", *(f"  {p}" for p in shown)])


def refuse(path: object, problems: Sequence[str]) -> None:
    """Raise InputError with the problems of a file, if there are any."""
    if problems:
        raise InputError(str(path), problems)


class MissingFile(ArchsimError):
    """A path that the user named and that does not exist."""

    exit_code = EXIT["missing file"]


class UnknownName(ArchsimError):
    """A name of a network, device, stack or key that archsim does not have; offers the nearest ones.

    >>> print(UnknownName("device", "tegra_x", ["tegra_x1", "gtx_1080"]))
    unknown device 'tegra_x'; nearest: tegra_x1
    """

    def __init__(self, what: str, name: str, known: Sequence[str], hint: str = "", near: Sequence[str] | None = None) -> None:
        self.what, self.name, self.known = what, name, tuple(known)
        self.near = tuple(nearest(name, known) if near is None else near)
        shown = name if len(name) <= LONGEST_SHOWN else f"{name[:LONGEST_SHOWN]}..."
        text = f"unknown {what} {shown!r}" + (f"; nearest: {', '.join(self.near)}" if self.near else "")
        super().__init__(text + (f"; {hint}" if hint else ""))


def one_of(what: str, name: str, known: Collection[str]) -> str:
    """A name that is among the `known` ones. Raises UnknownName, which lists them all."""
    if name not in known:
        raise UnknownName(what, name, list(known), hint=f"one of {', '.join(known)}")
    return name


class Unsupported(ArchsimError):
    """Something well formed that no model here covers; raised instead of returning a number that means nothing."""


class MissingExtra(ArchsimError):
    """A feature whose optional dependency is not installed."""

    exit_code = EXIT["missing extra"]

    def __init__(self, feature: str, extra: str, package: str = "") -> None:
        wanted = package or f'"archsim[{extra}]"'
        super().__init__(f"{feature} needs an optional package: pip install {wanted}")


def nearest(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """The `count` names of `known` that look most like `name`, best first; a bare `bandwidth` looks like the end of dotted keys.

    >>> nearest("gtx1080", ["gtx_1080", "gtx_1080_ti", "tesla_k40"])
    ['gtx_1080', 'gtx_1080_ti']
    >>> nearest("bandwith", ["l1.bandwidth", "l2.bandwidth", "link.bandwidth", "memory.bandwidth"])
    ['memory.bandwidth', 'l1.bandwidth', 'l2.bandwidth']
    """
    listed, wanted = list(known), name[:LONGEST_SHOWN].lower()
    ends: dict[str, list[str]] = {}
    for key in sorted(listed, key=lambda key: not key.startswith(MEANT)):
        dotted = "." in key and "." not in wanted and all(map(str.isidentifier, key.split(".")))
        ends.setdefault(key.rpartition(".")[2] if dotted else key, []).append(key)
    close = difflib.get_close_matches(wanted, list(ends), n=count, cutoff=0.6)
    whole = difflib.get_close_matches(wanted, listed, n=count, cutoff=0.6)
    return list(dict.fromkeys([*(key for end in close for key in ends[end]), *whole]))[:count]


def near_words(name: str, known: Iterable[str]) -> str:
    """The nearest names in a row, or all that are `known` where none is near."""
    listed = list(known)
    return ", ".join(nearest(name, listed) or listed)


class ArgumentError(ArchsimError, ValueError):
    """An argument outside its range."""


def refuse_arguments(wrong: Mapping[str, bool]) -> None:
    """Raise ArgumentError with the first text that holds, if one does."""
    for said, holds in wrong.items():
        if holds:
            raise ArgumentError(said)
