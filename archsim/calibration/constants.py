"""Fitted constants: one versioned file holds all of them, each with its bounds and where its value comes from."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from archsim.base.errors import InputError, UnknownName
from archsim.base.files import data_folder
from archsim.base.record import LABEL, ByIdentity, Identified
from archsim.base.schema import Form, Word, problems_of
from archsim.base.toml import read_document
from archsim.calibration.derived import values_of
from archsim.calibration.nearness import FEATURES, LIKE, Evidence, Platform, Question, basis, step_of

FILE = "default.toml"  # of the constants where none are named; the tests have theirs (conftest.py)
FULL = "full"  # the efficiency of a kernel family that loses nothing beyond what the bounds say; no constant
EXTRAPOLATED = "extrapolated"
SERVED = "served"  # how the names of classes of models begin that an engine serves, which rest on rows of kernels
NORMAL_80 = 1.2816  # standard deviations on either side of the mean that hold 80 % of a normal distribution
ENERGY = "energy."  # how the names of the constants begin that powers are fitted with
WIDER = 1.5  # how much wider an interval is where predictions are made otherwise than those of the rows. A choice, not a fit.


class ConstantForm(Form):
    """One constant; `low` and `high` are what physics allows."""

    value: float
    low: float
    high: float
    origin: Word
    fitted: bool = False
    derived: bool = False
    prior: float | None = None
    identified: Annotated[float, Field(ge=0, le=1)] | None = None


WIDEST = 10.0  # of a log: a prediction that is off by a factor of 22,000 says nothing
LARGEST = 1e6


class SpreadForm(Form):
    """How far predictions of one class were off on held-out rows: quantiles of log(predicted / measured)."""

    rows: Annotated[int, Field(ge=0)]
    low: Annotated[float, Field(ge=-WIDEST, le=WIDEST)]
    high: Annotated[float, Field(ge=-WIDEST, le=WIDEST)]
    median: Annotated[float, Field(ge=0, le=LARGEST)]
    p90: Annotated[float, Field(ge=0, le=LARGEST)]
    origin: Word


# architecture, device, stack, source, rows; TOML has lists for it
EvidenceRow = Annotated[tuple[Word, Word, Word, Word, Annotated[int, Field(ge=1)]], Field(strict=False)]


class IntervalForm(Form):
    """The spread of each class, at the stated level, and what was measured.

    slopes: group of classes -> how the log of its errors grows with each of `FEATURES`
    evidence: class -> [architecture, device, stack, source, rows]
    """

    level: Annotated[float, Field(gt=0, lt=1)]
    slopes: dict[Word, dict[Word, Annotated[float, Field(ge=0, le=WIDEST)]]] = {}
    classes: dict[Word, SpreadForm]
    evidence: dict[Word, list[EvidenceRow]] = {}


class FitForm(Form):
    """What the fitted constants were fitted on, and their covariance (of the logs, in the order of `names`)."""

    rows: int
    kinds: list[Word]
    rows_hash: Word
    median_before: float
    median_after: float
    names: list[Word]
    at_bound: list[Word]
    covariance: list[list[Annotated[float, Field(ge=-LARGEST, le=LARGEST)]]]


class CalibrationForm(Form):
    """The whole file."""

    schema_: Literal[1] = Field(alias="schema")
    version: Word
    constants: dict[Word, ConstantForm]
    interval: IntervalForm
    fit: FitForm | None = None
    energy_fit: FitForm | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """A constant of the model with the range that physics allows; `prior` is its value before any fit.

    `identified` is the share of the prior's variance that the fitted rows have removed: 1 where they tell it alone, 0 where they
    say nothing of it, None where it is not fitted.
    `derived`: where the cycle model gives it, its values by the architecture of a core; `value` is then that of all others.
    """

    value: float
    low: float
    high: float
    origin: str = field(metadata=LABEL)
    prior: float
    fitted: bool = False
    identified: float | None = None
    derived: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Errors of one class of predictions on rows that no constant had seen.

    `low` and `high` are quantiles of log(predicted / measured) that hold the level's share of the `rows`; `median` and
    `p90` are of |predicted / measured - 1|. Without rows it is a prior. That of a class is of its surest question; that of a
    question is wider by its features. `basis`: what the rows nearest to it are of; `like`: whose errors these are.
    """

    rows: int
    low: float
    high: float
    median: float
    p90: float
    origin: str = field(metadata=LABEL)
    basis: str = ""
    like: str = ""

    def scaled(self, factor: float) -> Spread:
        """With all logs of errors times a factor."""
        median, p90 = (math.expm1(factor * math.log1p(share)) for share in (self.median, self.p90))
        return replace(self, low=factor * self.low, high=factor * self.high, median=median, p90=p90)

    def around(self, value: float) -> tuple[float, float]:
        """Where a measured value is expected around a predicted one, [P exp(-high), P exp(-low)]."""
        return value * math.exp(-self.high), value * math.exp(-self.low)


def spread_of_product(first: Spread, second: Spread) -> Spread:
    """The spread of a product of two predictions whose errors are independent: their logs add in quadrature.

    low = -sqrt(low_1^2 + low_2^2), high = sqrt(high_1^2 + high_2^2)

    An energy is the product of a time and a power.

    >>> time, power = (Spread(rows=9, low=-one, high=one, median=0.1, p90=0.2, origin="x") for one in (0.3, 0.4))
    >>> round(spread_of_product(time, power).high, 12)
    0.5
    """
    return replace(second, low=-math.hypot(first.low, second.low), high=math.hypot(first.high, second.high))


def group_of(name: str) -> str:
    """The classes whose errors grow alike: of networks, of powers, of served models; kernels and powers by clock stand alone.

    >>> group_of("gpu training"), group_of("gpu kernel power"), group_of("gpu served time")
    ('gpu network', 'gpu power', 'gpu served')
    """
    kind, _, what = name.partition(" ")
    alike = {SERVED: what.startswith(SERVED), what: what in ("by clock", "kernel"), "power": what.endswith(("power", "units"))}
    return f"{kind} {next((group for group, inside in alike.items() if inside), 'network')}"


def rests_on(name: str) -> str:
    """The class whose rows are near to a question of this class: its own, and that of kernels for a model that is served."""
    return name if f" {SERVED} " not in name else f"{name.partition(' ')[0]} kernel"


@dataclass(frozen=True, slots=True, kw_only=True)
class FitRecord:
    """What a fit was made from; `kinds` are the kinds of device among its rows."""

    rows: int
    kinds: tuple[str, ...]
    rows_hash: str
    median_before: float
    median_after: float
    names: tuple[str, ...]
    at_bound: tuple[str, ...]
    covariance: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration(Identified):
    """All constants of the model, by name, and the intervals that belong to them."""

    version: str
    constants: Mapping[str, Constant]
    level: float
    spreads: Mapping[str, Spread]
    fit: FitRecord | None
    slopes: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # of the log of errors, by group and feature
    evidence: Mapping[str, tuple[Evidence, ...]] = field(default_factory=dict)  # the rows behind the spread of each class
    energy_fit: FitRecord | None = None  # that of the constants of energy, which are fitted to powers, after the times

    def __getitem__(self, name: str) -> float:
        """The value of a constant; UnknownName with the nearest names."""
        if name not in self.constants:
            raise UnknownName("constant", name, list(self.constants), hint="it belongs into the calibration file")
        return self.constants[name].value

    def gather(self, names: tuple[str, ...]) -> NDArray[np.float64]:
        """The values of several constants, in order."""
        return _gathered(ByIdentity(self), names)

    def spread_of(self, kind: str, what: str, question: Question, modelled: bool = True, without: str = "") -> tuple[str, Spread]:
        """The class of a prediction, with its spread: `what` (inference, training, kernel, power) on this kind of device.

        half width = quantile of the class x exp(slopes of its group . features of the question)

        For a fidelity that is not the one that was `modelled` for accuracy, for software and for an architecture
        without measured rows, the class is an extrapolation; one without rows has the widest spread of all that have. `without`:
        a source whose rows do not count. Source: Lei et al. 2018, section 5.2.
        """
        name = f"{kind} {what}"
        behind = [one for one in self.evidence.get(rests_on(name), ()) if one.source != without]
        features, step = question.features(behind), step_of(behind, question.platform)
        classes = [name] if name in self.spreads else list(self.spreads)
        spread = max((self.spreads[one].scaled(self.scale(one, features)) for one in classes), key=lambda s: s.high - s.low)
        if not any(known_class.startswith(f"{kind} ") for known_class in self.spreads):
            spread = replace(spread, rows=0, origin=f"no row of a {kind.upper()}: {spread.origin}")
        spread = replace(spread if modelled else spread.scaled(WIDER), basis=basis(behind, question.platform), like=LIKE[step])
        far = features[FEATURES.index("elsewhere")] + features[FEATURES.index("software")]
        return name if modelled and name in self.spreads and not far else f"{name} {EXTRAPOLATED}", spread

    def scale(self, name: str, features: tuple[float, ...]) -> float:
        """How much larger errors of a class are for these features than for the surest question."""
        slopes = self.slopes.get(group_of(name), {})
        return math.exp(sum(slopes.get(feature, 0.0) * value for feature, value in zip(FEATURES, features, strict=True)))

    def with_values(self, values: Mapping[str, float]) -> Calibration:
        """The same calibration with some values replaced, on every core; used by fits and sensitivity studies."""
        changed = {name: replace(self.constants[name], value=value, derived=None) for name, value in values.items()}
        return replace(self, constants={**self.constants, **changed})

    def on(self, core: str) -> Calibration:
        """The calibration with the values that are derived for a core."""
        return _on(ByIdentity(self), core)

    def uncertainties(self) -> dict[str, float]:
        """For each fitted constant the factor by which its 80 % interval reaches either way, from the covariance of the logs."""
        found = {}
        for record in filter(None, (self.fit, self.energy_fit)):
            for i, name in enumerate(record.names):
                found[name] = float(np.exp(NORMAL_80 * np.sqrt(record.covariance[i][i])))
        return found

    def before_fit(self, prefixes: Sequence[str] = ("",)) -> Calibration:
        """The same calibration with the constants of times at their priors, so that a fit starts from what no row has told.

        prefixes: of the constants that will be fitted; all others keep their values. Those of energy are fitted to powers, after
        the times.
        """
        return replace(self, constants=self._at_priors(tuple(prefixes), energy=False), fit=None)

    def before_energy_fit(self, prefixes: Sequence[str] = ("",)) -> Calibration:
        """The same calibration with the constants of energy that will be fitted at their priors, all others as they are."""
        return replace(self, constants=self._at_priors(tuple(prefixes), energy=True), energy_fit=None)

    def _at_priors(self, prefixes: tuple[str, ...], energy: bool) -> dict[str, Constant]:
        return {name: replace(c, value=c.prior, fitted=False, identified=None)
                if name.startswith(ENERGY) == energy and name.startswith(prefixes) else c
                for name, c in self.constants.items()}  # fmt: skip


@lru_cache(maxsize=256)
def _on(calibration: ByIdentity[Calibration], core: str) -> Calibration:
    own = {name: c.derived[core] for name, c in calibration.it.constants.items() if c.derived is not None and core in c.derived}
    return calibration.it.with_values(own) if own else calibration.it


@lru_cache(maxsize=256)
def _gathered(calibration: ByIdentity[Calibration], names: tuple[str, ...]) -> NDArray[np.float64]:
    return np.array([1.0 if name == FULL else calibration.it[name] for name in names])


@cache
def default() -> Calibration:
    """The shipped calibration."""
    return load(data_folder("reports/calibration").joinpath(FILE))


def load(place: str | Path | Traversable) -> Calibration:
    """Read a calibration file; InputError with every problem, among them a value outside its bounds."""
    document = read_document(place, "calibration")
    form, problems = problems_of(CalibrationForm, document, "")
    if form is None:
        raise InputError(str(place), problems)
    if not form.interval.classes:
        raise InputError(str(place), "interval.classes: holds no class, so that no estimate would have an interval")
    outside = [name for name, c in form.constants.items() if not c.low <= c.value <= c.high]
    if outside:
        raise InputError(str(place), [f"constants.{name}.value: is outside [low, high]" for name in outside])
    constants = {
        name: Constant(
            value=c.value, low=c.low, high=c.high, origin=c.origin, fitted=c.fitted, identified=c.identified,
            prior=c.value if c.prior is None else c.prior, derived=values_of(name) if c.derived else None,
        )
        for name, c in form.constants.items()
    }
    spreads = {name: Spread(**row.model_dump()) for name, row in form.interval.classes.items()}
    fit, energy_fit = (None if record is None else _fit_record(record) for record in (form.fit, form.energy_fit))
    return Calibration(
        version=form.version, constants=constants, level=form.interval.level,
        spreads=spreads, fit=fit, energy_fit=energy_fit, slopes=form.interval.slopes,
        evidence={name: tuple([_evidence(*row) for row in rows]) for name, rows in form.interval.evidence.items()},
    )  # fmt: skip


def _evidence(architecture: str, device: str, stack: str, source: str, rows: int) -> Evidence:
    return Evidence(platform=Platform(architecture=architecture, device=device, stack=stack), source=source, rows=rows)


def _fit_record(form: FitForm) -> FitRecord:
    values: dict[str, Any] = form.model_dump()
    covariance = tuple(tuple(row) for row in values.pop("covariance"))
    lists = {name: tuple(values.pop(name)) for name in ("kinds", "names", "at_bound")}
    return FitRecord(covariance=covariance, **(values | lists))


def dump(calibration: Calibration) -> str:
    """The calibration as the text of its file; floats round-trip."""
    lines = [
        "# The constants of the model. Each has the range that physics allows and says where its value comes from; those with",
        "# fitted = true were fitted by `archsim calibrate` to published measurements; those with derived = true follow from the",
        "# cycle model, and derived.toml has them for each core; the others are priors.",
        "schema = 1",
        f"version = {json.dumps(calibration.version)}",
        "",
        "[constants]",
    ]
    for name, c in calibration.constants.items():
        by = "" if c.derived is None else ", derived = true"
        told = "" if c.identified is None else f", identified = {_real(c.identified)}"
        flag = f", fitted = true, prior = {_real(c.prior)}{told}" if c.fitted else ""
        lines.append(
            f"{json.dumps(name)} = {{ value = {_real(c.value)}, low = {_real(c.low)}, high = {_real(c.high)}{flag}{by}, "
            f"origin = {json.dumps(c.origin)} }}"
        )
    lines += ["", "[interval]", f"level = {_real(calibration.level)}"]
    lines += ["", "[interval.slopes]"]
    lines += [f"{json.dumps(name)} = {{ {', '.join(f'{feature} = {_real(slope)}' for feature, slope in slopes.items())} }}"
              for name, slopes in calibration.slopes.items()]  # fmt: skip
    lines += ["", "[interval.classes]"]
    for name, s in calibration.spreads.items():
        lines.append(
            f"{json.dumps(name)} = {{ rows = {s.rows}, low = {_real(s.low)}, high = {_real(s.high)}, median = {_real(s.median)}, "
            f"p90 = {_real(s.p90)}, origin = {json.dumps(s.origin)} }}"
        )
    if calibration.evidence:
        lines += ["", "[interval.evidence]", "# class = rows of [architecture, device, stack, source, how many]"]
    for name, behind in calibration.evidence.items():
        lines += [f"{json.dumps(name)} = [", *[f"  {json.dumps(_row(one))}," for one in behind], "]"]
    for table, record in (("fit", calibration.fit), ("energy_fit", calibration.energy_fit)):
        lines += [] if record is None else _record_lines(table, record)
    return "\n".join(lines) + "\n"


def _row(one: Evidence) -> list[str | int]:
    return [one.platform.architecture, one.platform.device, one.platform.stack, one.source, one.rows]


def _record_lines(table: str, f: FitRecord) -> list[str]:
    return [
        "", f"[{table}]", f"rows = {f.rows}", f"kinds = {json.dumps(f.kinds)}", f"rows_hash = {json.dumps(f.rows_hash)}",
        f"median_before = {_real(f.median_before)}",
        f"median_after = {_real(f.median_after)}", f"names = {json.dumps(f.names)}", f"at_bound = {json.dumps(f.at_bound)}",
        "covariance = [", *[f"  [{', '.join(map(_real, row))}]," for row in f.covariance], "]",
    ]  # fmt: skip


def _real(value: float) -> str:
    """A float as TOML writes it."""
    return repr(float(value))
