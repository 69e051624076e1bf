"""What differs between the contenders of a comparison besides the device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from archsim.base.units import show
from archsim.stack import catalog
from archsim.study.comparison import Comparison
from archsim.study.contender import Contender

MOST_VALUES = 2  # that are named
MOST_LISTED = 6  # names in a row


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A condition in which contenders differ: which have which value, most frequent first; of a number also its range."""

    name: str
    values: tuple[tuple[str, tuple[str, ...]], ...]
    range: tuple[float, float] | None = None
    unit: str = ""

    def written(self, called: Mapping[str, str]) -> str:
        """In words, with what each device is `called`; of many values how many there are."""
        if self.range is not None:
            return f"{self.name} {show(self.range[0], self.unit, 3)} to {show(self.range[1], self.unit, 3)}"
        if len(self.values) > MOST_VALUES:
            return f"{len(self.values)} different {self.name}s"
        each = all(len(names) == 1 for _, names in self.values)
        return f"{self.name} " + ", ".join(
            f"{value} ({called.get(names[0], names[0]) if each else len(names)})" for value, names in self.values
        )


# what differs, its unit, and its value for a contender; None where a device has no such thing
CONDITIONS: tuple[tuple[str, str, Callable[[Contender], str | float | None]], ...] = (
    ("stack", "", lambda c: c.estimate.stack),
    ("precision", "", lambda c: c.estimate.precision),
    ("clock", "Hz", lambda c: c.estimate.clock_hz),
    ("host CPU", "", lambda c: c.estimate.host_cpu if c.kind != "cpu" else None),
    ("threads", "1", lambda c: None if c.estimate.threads is None else float(c.estimate.threads)),
)


def differences(contenders: Sequence[Contender]) -> list[Difference]:
    """The conditions that are not the same for all contenders that have them, most frequent values first."""
    found = []
    for name, unit, value_of in CONDITIONS:
        values = [(c, value) for c in contenders if (value := value_of(c)) is not None]
        named = _named((show(value, unit, 3) if isinstance(value, float) else value, c.device_name) for c, value in values)
        numbers = [value for _, value in values if isinstance(value, float)]
        if len(named) > 1:
            order = sorted(((value, tuple(names)) for value, names in named.items()), key=lambda pair: -len(pair[1]))
            span = (min(numbers), max(numbers)) if numbers else None
            found.append(Difference(name=name, values=tuple(order), range=span, unit=unit))
    return found


def listed(names: Sequence[str]) -> str:
    """Names in a row, of many the first.

    >>> listed("abc"), listed("abcdefghi")
    ('a, b, c', 'a, b, c, d, e, f and 3 more')
    """
    few = len(names) <= MOST_LISTED + 1
    return ", ".join(names if few else names[:MOST_LISTED]) + ("" if few else f" and {len(names) - MOST_LISTED} more")


def _named(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """The names of each value."""
    found: dict[str, list[str]] = {}
    for value, name in pairs:
        found.setdefault(value, []).append(name)
    return found


def software_note(c: Comparison, called: Mapping[str, str]) -> str:
    """That part of what is compared is software, where devices run their usual stacks and these are of several frameworks."""
    named = _named((catalog.find(x.estimate.stack).framework, called[x.name]) for x in c.all if not c.stacks)
    if len(named) < 2:
        return ""
    most = max(named, key=lambda framework: len(named[framework]))
    others = ", ".join(f"{framework} ({listed(names)})" for framework, names in named.items() if framework != most)
    return f"not comparable: {others} beside {most}; --stack {most} asks one framework of all"
