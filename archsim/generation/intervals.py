"""Where the measured values of a served language model are expected: by the errors of single runs, of which none is served."""

from __future__ import annotations

from archsim.calibration.constants import WIDER, Calibration, Spread
from archsim.calibration.nearness import Platform

TIME, RATE, POWER = "time", "rate", "power"  # of batches that arrive at once; under a load that is kept; watts and joules


def served_spread(calibration: Calibration, kind: str, platform: Platform, quantity: str) -> tuple[str, Spread]:
    """The class of single runs that an interval stands on, and the spread of its errors.

    Times of static batches have the spread of networks. Rates under load, powers and energies depend on how an engine mixes
    prompts and answers, which single runs say nothing of: theirs is wider, as that of any class that is extrapolated.
    """
    return calibration.spread_of(kind, "power" if quantity == POWER else "inference", platform, modelled=quantity == TIME)


def interval_basis(kind: str, time: Spread, energy: Spread) -> str:
    """What the intervals stand on."""
    return (f"the errors of {time.rows} held-out rows of class {kind} and, for energy, {WIDER:g} times those of "
            f"{energy.rows} of gpu power: single runs, none of them of a model that an engine serves; no class of served models "
            "is fitted")  # fmt: skip
