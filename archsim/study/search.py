"""Search of a space of devices: all points of a grid or a sample, or trials chosen by optuna; the best points and the Pareto
front.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archsim.base.errors import ArchsimError, MissingExtra, Unsupported
from archsim.base.record import Answer
from archsim.cost.cost import Array
from archsim.estimation import fidelity
from archsim.estimation.die import die_columns
from archsim.estimation.measured import class_of
from archsim.estimation.pipeline import run
from archsim.estimation.request import Request
from archsim.study.grid import outcomes
from archsim.study.knob import CHOICES
from archsim.study.objective import SILICON, Condition, Objective, pareto_front
from archsim.study.space import Space

MOST = 3_000_000  # points of an exhaustive search; more need a sample or trials
TRIALS_AT_ONCE = 64
SIMULATED = 5  # points of the best and of the front that the cycle model repeats, which takes a second or two for each
PENALTY = 10.0  # added to the log of an objective per unit of the log by which a condition is violated
Columns = dict[str, Array]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchGoal:
    """Objectives, the first of which ranks the points; conditions; and the objectives of the Pareto front."""

    objectives: tuple[Objective, ...]
    conditions: tuple[Condition, ...] = ()
    front: tuple[Objective, ...] = ()
    any_memory: bool = False  # whether points that do not fit their memory count
    any_die: bool = False  # whether points count whose die no mask can make

    def made(self, values: Mapping[str, Array]) -> NDArray[np.bool_]:
        """Where masks can make the die, or that is not asked, [D]."""
        asked = "one_die" in values and not self.any_die
        return np.asarray(values["one_die"] > 0) if asked else np.ones(len(values["latency_s"]), dtype=np.bool_)

    def feasible(self, values: Mapping[str, Array]) -> NDArray[np.bool_]:
        """Where all conditions hold, [D]."""
        found = np.isfinite(values["latency_s"]) & self.made(values)
        if not self.any_memory:
            found &= values["fits"] > 0
        for condition in self.conditions:
            found &= condition.holds(values)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult(Answer):
    """What a search from a `request` has found: `best` and `front` are rows {knob or output: value}, best first; `base` is the
    device itself.

    Of `points`, `feasible` met the conditions, `broken` were impossible, for the reason `why`, and `large` were left out, because
    no mask can make their die. `cloud` holds some of the feasible rows, for a picture. Where the cycle model has repeated some,
    rows have `simulated_s`, NaN in others, and `held`: whether the interval of the closed form holds that latency.
    """

    request: Request
    goal: SearchGoal
    knobs: tuple[str, ...]
    how: str
    points: int
    feasible: int
    broken: int
    why: str
    large: int
    base: Mapping[str, Any]
    best: tuple[Mapping[str, Any], ...]
    front: tuple[Mapping[str, Any], ...]
    cloud: tuple[Mapping[str, Any], ...]


class Evaluator:
    """Outputs of points, with die area and cost where these are modelled."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.silicon = bool(die_columns(request.spec, {}, 1))

    def __call__(self, columns: Mapping[str, Array]) -> tuple[dict[str, Array], list[str]]:
        """The outputs [D] of points whose knobs are columns [D], and the problem of each impossible point."""
        found = outcomes(self.request, columns)
        each = 1.0 / found.values["throughput_per_w"]
        values = {**found.values, "energy_per_sample_j": each, "energy_delay_js": each * found.values["latency_s"]}
        if self.silicon:
            keys = {knob: column for knob, column in columns.items() if knob not in CHOICES and "." in knob}
            values |= die_columns(self.request.spec, keys, len(values["latency_s"]))
        return values, found.problems

    def check(self, outputs: Iterable[str]) -> None:
        """Raises Unsupported where one of these outputs is of the die, and the die is not modelled."""
        wanted = [name for name in outputs if name in SILICON]
        if wanted and not self.silicon:
            hardware = self.request.spec.identity.id
            raise Unsupported(f"{wanted[0]}: the die of {hardware} is not modelled; GPUs of known nodes are")

    def one(self, **knobs: float) -> dict[str, float]:
        """The outputs of one point; without knobs those of the base."""
        values, _ = self({k: np.array([v]) for k, v in knobs.items()} or {"memory.bandwidth": np.array([self._bandwidth])})
        return {name: float(column[0]) for name, column in values.items()}

    @property
    def _bandwidth(self) -> float:
        return float(np.ravel(self.request.spec.device.memory.bandwidth)[0])


@dataclass(slots=True)
class Collector:
    """Receives points and keeps the best and the front, in bounded memory."""

    goal: SearchGoal
    knobs: tuple[str, ...]
    top: int
    best: list[tuple[float, int, dict[str, Any]]]
    rows: list[dict[str, Any]]
    points: int = 0
    feasible: int = 0
    broken: int = 0
    why: str = ""
    large: int = 0

    def add(self, columns: Mapping[str, Array], values: Mapping[str, Array], problems: Sequence[str]) -> None:
        """Add points."""
        both: dict[str, Any] = {**columns, **values}
        sound = self.goal.feasible(both)
        said = [text for text in problems if text]
        self.broken += len(said)
        self.large += int((np.isfinite(values["latency_s"]) & ~self.goal.made(values)).sum())
        self.why = self.why or (said[0] if said else "")
        start, self.points = self.points, self.points + len(sound)
        self.feasible += int(sound.sum())
        places = np.flatnonzero(sound)
        if not places.size:
            return
        cost = self.goal.objectives[0].cost(both)[places]
        order = np.argsort(cost, kind="stable")[: self.top]
        self.best += [(float(cost[i]), start + int(places[i]), row_at(both, int(places[i]))) for i in order]
        self.best = sorted(self.best, key=lambda item: item[:2])[: self.top]
        costs = np.stack([objective.cost(both)[places] for objective in self.goal.front], axis=1)
        candidates = [row_at(both, int(places[i])) for i in pareto_front(costs)]
        merged = [*self.rows, *candidates]
        kept = pareto_front(np.array([[float(o.cost(row)) for o in self.goal.front] for row in merged]))
        self.rows = [merged[i] for i in kept]


def row_at(both: Mapping[str, Any], place: int) -> dict[str, Any]:
    """One point as plain values."""
    found: dict[str, Any] = {}
    for name, column in both.items():
        value = column[place]
        found[name] = str(value) if isinstance(value, str) else float(value)
    return found


def search(
    request: Request, space: Space, goal: SearchGoal, *, top: int = 10, trials: int = 0, seed: int = 0, repeated: bool = False,
    tell: Callable[[str], None] = lambda text: None,
) -> SearchResult:  # fmt: skip
    """Evaluate all points of a space, or `trials` points that optuna chooses with `seed`; `repeated`: the best and the front by
    the cycle model, too.

    Raises BadAxis for an impossible space, Unsupported for one that is too large, MissingExtra for trials without optuna.
    """
    evaluator = Evaluator(request)
    evaluator.check([*(o.output for o in (*goal.objectives, *goal.front)), *(c.name for c in goal.conditions)])
    collector = Collector(goal=goal, knobs=space.knobs, top=top, best=[], rows=[])
    cloud: list[dict[str, Any]] = []
    if trials:
        how = f"{trials:,} trials of optuna, seed {seed}"
        _run_trials(evaluator, space, collector, trials, seed, cloud, tell)
    else:
        how = f"a sample of {space.sample:,}, seed {space.seed}" if space.sample else "every point"
        _run_all(evaluator, space, collector, cloud, tell)
    best = [row for _, _, row in collector.best]
    if repeated:
        repeat(request, space.knobs, [*best[:1], *collector.rows, *best[1:]])
    return SearchResult(
        request=request, goal=goal, knobs=space.knobs, how=how, points=collector.points, feasible=collector.feasible,
        broken=collector.broken, why=collector.why, large=collector.large, base=evaluator.one(),
        best=tuple(best), front=tuple(collector.rows), cloud=tuple(cloud),
    )  # fmt: skip


def repeat(request: Request, knobs: Sequence[str], rows: Sequence[dict[str, Any]]) -> None:
    """Add to rows their latency by the cycle model, of the first `SIMULATED` points, and whether the interval holds it.

    Rows stay as they are where the device has no cycle model, and of a search that is not by the closed form.
    """
    points = [tuple(row[knob] for knob in knobs) for row in rows]
    some = list(dict.fromkeys(points))[:SIMULATED]
    if not some or request.fidelity.name != fidelity.FITTED:
        return
    columns = {knob: np.array(column) for knob, column in zip(knobs, zip(*some, strict=True), strict=True)}
    try:
        found = outcomes(replace(request, fidelity=fidelity.find("cycle")), columns).values["latency_s"]
    except ArchsimError:
        return
    told = dict(zip(some, found.tolist(), strict=True))
    _, spread = class_of(request, run(request))
    for point, row in zip(points, rows, strict=True):
        low, high = spread.around(row["latency_s"])
        latency = told.get(point, np.nan)
        row |= {"simulated_s": latency, "held": float(not (latency < low or latency > high))}


PICTURE_POINTS = 2000


def check_count(space: Space) -> None:
    """Raises Unsupported for a space with more points than a search evaluates."""
    if space.count > MOST:
        raise Unsupported(f"{space.count:,} points are more than {MOST:,}: look at a sample (--sample 100000) or let optuna "
                          f"choose (--trials 2000)")  # fmt: skip


def _run_all(
    evaluator: Evaluator, space: Space, collector: Collector, cloud: list[dict[str, Any]], tell: Callable[[str], None]
) -> None:
    check_count(space)
    thin = -(-space.count // PICTURE_POINTS)
    for number in range(space.parts):
        part = space.part(number)
        columns = space.columns(part, evaluator.request)
        values, problems = evaluator(columns)
        _keep_some(cloud, collector, columns, values, range(-part.start % thin, part.stop - part.start, thin))
        collector.add(columns, values, problems)
        tell(f"{part.stop:,} of {space.count:,} points, {collector.feasible:,} within the limits")


def _keep_some(
    cloud: list[dict[str, Any]], collector: Collector, columns: Mapping[str, Array], values: Mapping[str, Array], places: range
) -> None:
    both: dict[str, Any] = {**columns, **values}
    sound = collector.goal.feasible(both)
    cloud += [row_at(both, i) for i in places if sound[i]]


def _run_trials(
    evaluator: Evaluator, space: Space, collector: Collector, trials: int, seed: int, cloud: list[dict[str, Any]],
    tell: Callable[[str], None],
) -> None:  # fmt: skip
    """Trials chosen by optuna's tree-structured Parzen estimator (Bergstra et al. 2011), some at a time."""
    try:
        import optuna
    except ImportError:
        raise MissingExtra("a search by trials", "dse") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = optuna.samplers.TPESampler(seed=seed)
    study = optuna.create_study(directions=["minimize"] * len(collector.goal.objectives), sampler=sampler)
    dimensions = {axis.knob: _dimension(optuna, axis) for axis in space.axes}
    while collector.points < trials:
        asked = [study.ask(dimensions) for _ in range(min(TRIALS_AT_ONCE, trials - collector.points))]
        columns: Columns = {knob: np.array([trial.params[knob] for trial in asked]) for knob in dimensions}
        for axis in space.axes:
            if axis.values:
                columns[axis.knob] = axis.picked(columns[axis.knob].astype(float))
        for link in space.links:
            columns[link.knob] = link.values(evaluator.request, columns[link.follows])
        values, problems = evaluator(columns)
        both: dict[str, Any] = {**columns, **values}
        for i, trial in enumerate(asked):
            cost = _penalised(collector.goal, row_at(both, i))
            if cost is None:
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
            else:
                study.tell(trial, cost)
        _keep_some(cloud, collector, columns, values, range(len(asked)))
        collector.add(columns, values, problems)
        tell(f"{collector.points:,} of {trials:,} trials, {collector.feasible:,} within the limits")


def _dimension(optuna: Any, axis: Any) -> Any:
    """An axis for optuna: a list by position, so that neighbouring values are near each other; a range as it is."""
    if axis.values:
        return optuna.distributions.IntDistribution(0, len(axis.values) - 1)
    if axis.whole:
        return optuna.distributions.IntDistribution(int(axis.low), int(axis.high), log=axis.log)
    return optuna.distributions.FloatDistribution(axis.low, axis.high, log=axis.log)


def _penalised(goal: SearchGoal, row: Mapping[str, Any]) -> list[float] | None:
    """Logs of the objectives, plus a penalty for violated conditions; None for an impossible point."""
    if not np.isfinite(row["latency_s"]):
        return None
    missed = sum(float(condition.excess(row)) for condition in goal.conditions)
    missed += float(row["fits"] == 0 and not goal.any_memory) + float(row.get("one_die") == 0 and not goal.any_die)
    return [float(np.log(row[o.output])) * (-1 if o.maximise else 1) + PENALTY * missed for o in goal.objectives]


def with_default_front(goal: SearchGoal, knobs: Sequence[str], silicon: bool) -> SearchGoal:
    """The goal with a front where none is given: over all objectives; for a single one, over it and the area, or time or energy.
    """
    if goal.front:
        return goal
    if len(goal.objectives) > 1:
        return replace(goal, front=goal.objectives)
    first = goal.objectives[0]
    varies_hardware = silicon and any("." in knob for knob in knobs) and first.output not in SILICON
    timed = first.output in ("latency_s", "throughput_per_s")
    other = "area_mm2" if varies_hardware else "energy_j" if timed else "latency_s"
    return replace(goal, front=(first, Objective(output=other, maximise=False)))
