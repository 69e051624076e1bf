"""Who is the best by each criterion, how sure that is, and by how much, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from archsim.base.units import COUNT, show
from archsim.study.comparison import CurveComparison
from archsim.study.contender import Contender
from archsim.study.correlation import correlation_note
from archsim.study.ranking import Criterion, Ranking

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
