"""Who is the best by each criterion, how sure that is, and by how much, in words; and what differs besides the device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from archsim.base.record import by_key
from archsim.base.units import COUNT, show
from archsim.stack import catalog
from archsim.study.comparison import Comparison, CurveComparison
from archsim.study.contender import Contender
from archsim.study.ranking import Criterion, Ranking, correlation_note

# --------------------------------------------------------------------------------------------------------- what differs

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
        named = by_key((show(value, unit, 3) if isinstance(value, float) else value, c.device_name) for c, value in values)
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


def software_note(c: Comparison, called: Mapping[str, str]) -> str:
    """That part of what is compared is software, where devices run their usual stacks and these are of several frameworks."""
    named = by_key((catalog.find(x.estimate.stack).framework, called[x.name]) for x in c.all if not c.stacks)
    if len(named) < 2:
        return ""
    most = max(named, key=lambda framework: len(named[framework]))
    others = ", ".join(f"{framework} ({listed(names)})" for framework, names in named.items() if framework != most)
    return f"not comparable: {others} beside {most}; --stack {most} asks one framework of all"


# ------------------------------------------------------------------------------------------------------ who is the best

FAMILY = "GeForce "  # a word that nobody needs who reads RTX or GTX
TOSS_UP = 0.75  # probability below which nobody should rely on an order
MOST_PAIRS = 2  # that are named
ONLY = "the only one with a price"
FEW = 0.005  # relative; less is no lead
MOST_RUNS = 4  # stretches of batches that are named
Line = tuple[str, str, str]  # who, how sure, by how much


def titles(contenders: Sequence[Contender]) -> dict[str, str]:
    """What each contender is called for people, by its name and by that of its device: the device as its maker calls it, with
    its stack where several run on it, which alone tells those of a single device apart. Two are never called alike.
    """
    device = {c.device_name: _device_title(c) for c in contenders}
    unique = [*device.values()]
    device = {name: title if unique.count(title) == 1 else name for name, title in device.items()}
    each = {c.name: device[c.device_name] for c in contenders}
    stacks = [c.estimate.stack for c in contenders]
    if len(device) == 1 and len(set(stacks)) == len(stacks) > 1:
        each = {c.name: c.estimate.stack for c in contenders}
    elif len(set(each.values())) < len(each):
        each = {c.name: f"{device[c.device_name]} {c.estimate.stack}" for c in contenders}
    return device | each


def _device_title(c: Contender) -> str:
    identity = c.estimate.spec.identity
    name = identity.name.partition(" (")[0].partition(",")[0].removeprefix(f"{identity.vendor} ").removeprefix(FAMILY)
    return c.device_name.replace(identity.id, name, 1)


def chance(probability: float) -> str:
    """A probability in per cent; one that rounds to none or to certainty is not said to be that.

    >>> chance(0.876), chance(0.0), chance(0.9999), chance(1.0)
    ('88 %', 'below 1 %', 'above 99 %', 'above 99 %')
    """
    if probability < 0.005:
        return "below 1 %"
    return "above 99 %" if probability > 0.995 else f"{100 * probability:.0f} %"


def best_line(r: Ranking, called: Mapping[str, str]) -> Line | None:
    """The first place of a ranking; None where nobody has a place."""
    if not r.order:
        return None
    score = f"{show(r.scores[0], COUNT, 3)} {r.criterion.unit_for(r.order[0])}"
    if len(r.order) == 1:
        return f"{called[r.order[0].name]} is {r.criterion.best}", ONLY, score
    ratio = max(r.scores[0] / r.scores[1], r.scores[1] / r.scores[0])
    after = called[r.order[1].name]
    lead = r.criterion.beats.format(ratio=f"{ratio:.3g}", next=after) if ratio > 1 + FEW else f"the same as {after}"
    return f"{called[r.order[0].name]} is {r.criterion.best}", f"{chance(r.best[0])} sure", f"{score}, {lead}"


def toss_ups(r: Ranking, called: Mapping[str, str]) -> str:
    """Neighbours in the order that nobody should rely on; empty without."""
    pairs = [i for i, ahead in enumerate(r.ahead) if ahead < TOSS_UP]
    names = [called[c.name] for c in r.order]
    named = "; ".join(f"{names[i]} before {names[i + 1]} is {chance(r.ahead[i])} sure" for i in pairs[:MOST_PAIRS])
    more = f" and {len(pairs) - MOST_PAIRS} more" if len(pairs) > MOST_PAIRS else ""
    return f"A toss-up by {r.criterion.title}: {named}{more}." if pairs else ""


def certainty(rankings: Sequence[Ranking]) -> list[str]:
    """The probability of each whole order, and the assumptions behind all."""
    ranked = [r for r in rankings if len(r.order) > 1]
    if not ranked:
        return []
    whole = ", ".join(f"by {r.criterion.title} {chance(r.whole)}" for r in ranked)
    return [f"Whole order right: {whole}.", correlation_note(ranked[0].correlation)]


def best_over(c: CurveComparison, criterion: Criterion, called: Mapping[str, str]) -> Line | None:
    """The best at each batch by one criterion, and how sure that is at the least and at the most; None where nobody is."""
    places = [next(r for r in one.rankings if r.criterion is criterion) for one in c.best]
    held = [(batch, r) for batch, r in zip(c.curves[0].batches, places, strict=True)]
    runs = [(name, [batch for batch, _ in own]) for name, group in groupby(held, lambda pair: _first(pair[1], called))
            for own in [list(group)]]  # fmt: skip
    if not any(name for name, _ in runs):
        return None
    chances = sorted(r.best[0] for r in places if len(r.order) > 1)
    ends = list(dict.fromkeys(map(chance, (chances[0], chances[-1])))) if chances else []
    scores = [show(r.scores[0], COUNT, 3) for r in places if r.order]
    told = f"{' to '.join(dict.fromkeys((scores[0], scores[-1])))} {criterion.unit_for(c.curves[0].points[0])}"
    sure = f"{' to '.join(ends)} sure" if ends else ONLY
    if len(runs) == 1:
        return f"{runs[0][0]} is {criterion.best} at every batch", sure, told
    names = list(dict.fromkeys(name for name, _ in runs if name))
    said = [f"{name or 'none'} {_from(batches, last=i == len(runs) - 1)}" for i, (name, batches) in enumerate(runs)]
    where = ", ".join(said) if len(runs) <= MOST_RUNS else "in turn"
    return f"{criterion.best.capitalize()}: {' or '.join(names[:MOST_RUNS])}", sure, f"{where}; {told}"


def _first(r: Ranking, called: Mapping[str, str]) -> str:
    return called[r.order[0].name] if r.order else ""


def _from(batches: Sequence[int], last: bool) -> str:
    """`at batch 8`, `from batch 8 to 16`, or on to the last one."""
    if len(batches) == 1:
        return f"at batch {batches[0]}"
    return f"from batch {batches[0]}" if last else f"at batch {batches[0]} to {batches[-1]}"
