"""The core clock at which a sample takes no more energy than a budget."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from archsim.base.errors import ArgumentError, Unsupported
from archsim.base.units import show
from archsim.cost.cost import Array
from archsim.cost.power import SLOWEST
from archsim.estimation.boundary import WALL
from archsim.estimation.pipeline import run
from archsim.estimation.request import Request, with_spec

MOST_BUDGET = 1e12  # J
CLOCKS = 33  # tried at a time
ROUNDS = 3  # of ever finer clocks: the last are 0.003 % apart


def check_budget(budget: float) -> None:
    """Raise ArgumentError for an energy that nothing can keep to [J]."""
    if not 0.0 < budget <= MOST_BUDGET:
        raise ArgumentError(f"energy budget {budget:g} J is not above 0 and up to {MOST_BUDGET:g} J")


def within_energy_budget(request: Request, budget: float) -> Request:
    """The request at the highest core clock, up to its own, at which a sample takes no more than a budget [J].

    A lower clock saves energy down to some clock, below which what is drawn all the time takes more than what the lower voltage
    saves. A power limit holds beside the budget. Unchanged where the energy is within the budget already.

    Raises ArgumentError for a budget that is no energy, Unsupported for one below the least energy at any clock.

    >>> from archsim.estimation.request import make_request
    >>> slow = within_energy_budget(make_request("resnet_50", "tesla_v100_sxm2", batch=16), 0.22)
    >>> bool(slow.clock < 1.5e9), bool(run(slow).total_energy_j[0] / 16 <= 0.22)
    (True, True)
    """
    check_budget(budget)
    if request.asked.get("boundary") == WALL:
        raise ArgumentError("energy budget: is one of the device, which its clock decides; leave --boundary wall out")
    usual, top = _energy(request), float(np.ravel(request.clock)[0])
    if usual <= budget:
        return _noted(request, f"energy budget {show(budget, 'J')} per sample: {show(usual, 'J')} without it")
    clock = _highest(request, budget, top)
    said = (f"energy budget {show(budget, 'J')} per sample: core clock {show(clock, 'Hz')}, the highest at which it is kept; "
            f"{show(usual, 'J')} at up to {show(top, 'Hz')}")  # fmt: skip
    return _noted(_at(request, clock), said)


def _highest(request: Request, budget: float, top: float) -> float:
    """The highest clock at which the energy is within the budget [Hz], found on ever finer clocks."""
    low, high, least = SLOWEST * top, top, (float("inf"), top)
    for _ in range(ROUNDS):
        clocks = np.linspace(low, high, CLOCKS)
        energies = _energies(request, clocks)
        place = int(np.argmin(energies))
        least = min(least, (float(energies[place]), float(clocks[place])))
        within = np.flatnonzero(energies <= budget)
        # where none is within the budget the least energy may lie between two clocks
        here = int(within[-1]) if within.size else place
        low, high = float(clocks[here if within.size else max(here - 1, 0)]), float(clocks[min(here + 1, CLOCKS - 1)])
    if least[0] > budget:
        raise Unsupported(f"energy budget {show(budget, 'J')} per sample: {request.network} on {request.spec.identity.id} takes "
                          f"{show(least[0], 'J')} at least, at a core clock of {show(least[1], 'Hz')}; `archsim tune` also tries "
                          "memory clocks, power limits and batches")  # fmt: skip
    return low


def _energies(request: Request, clocks: Array) -> Array:
    """Energy of a sample at each clock [J], [D]."""
    return np.broadcast_to(run(_at(request, clocks[:, None])).total_energy_j, clocks.shape) / request.batch


def _energy(request: Request) -> float:
    return float(run(request).total_energy_j[0]) / request.batch


def _at(request: Request, clock: float | Array) -> Request:
    """The request at another clock, which is then one that was asked for; its power limit stays."""
    return with_spec(request, request.spec, clock=clock, power_mode=None)


def _noted(request: Request, said: str) -> Request:
    return replace(request, notes=(*request.notes, said))
