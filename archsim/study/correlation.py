"""How far two contenders share the error of their predictions.

Correlations of log errors of times, over pairs of rows of networks.csv that constants may be fitted to, with the same network,
task, batch and precision (tests/bench/correlation.py prints them):

    two GPUs, one source and stack      0.56   596 pairs
    two GPUs, two stacks                0.26  3668 pairs
    one GPU, two stacks                 0.13  2350 pairs
    a CPU and a GPU                    -0.02  5506 pairs
    one CPU, two stacks                -0.06  1548 pairs, all of one CPU
    two CPUs                            too few: of 624 pairs most are of the same two CPUs

Contenders with two stacks share one figure, the mean of the three rows of GPUs by their pairs.

A shared error moves both alike and leaves their order as it is. Where nothing was measured, the figures of GPUs are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from archsim.cost.cost import Array
from archsim.study.contender import Contender

SAME_STACK = 0.6
TWO_STACKS = 0.1


def pair_correlation(a: Contender, b: Contender, asked: float | None = None) -> float:
    """The correlation of the log errors of two contenders: the one that was asked for, else the measured one."""
    if asked is not None:
        return asked
    return SAME_STACK if a.estimate.stack == b.estimate.stack else TWO_STACKS


def matrix(contenders: Sequence[Contender], asked: float | None = None) -> Array:
    """The correlation of every pair, [n, n], 1 on the diagonal."""
    found = np.eye(len(contenders))
    for (i, a), (j, b) in combinations(enumerate(contenders), 2):
        found[i, j] = found[j, i] = pair_correlation(a, b, asked)
    return found


def correlation_note(asked: float | None) -> str:
    """What is assumed of errors, as a sentence."""
    if asked is not None:
        return f"Errors of any two predictions are assumed to have the correlation {asked:g} (--correlation)."
    return (f"Errors of two predictions are correlated as measured of GPUs, {SAME_STACK:g} with one stack and {TWO_STACKS:g} "
            "with two (--correlation sets one number); a shared error does not change the order.")  # fmt: skip
