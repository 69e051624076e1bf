"""Which constants a fit needs: what it loses on rows of left-out sources and architectures where one stays at its prior.

A constant that only follows the rows it was fitted to makes the errors of others larger: it is told by the rows of a source and
leads astray on those of the next. So the order in which constants can be left out is found by rows that a fit has not seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from archsim.cost.cost import Array
from archsim.evidence.case import Case
from archsim.validation.crossvalidate import Refits
from archsim.validation.fit import PULL, SOFT

GROUPS: tuple[Callable[[Case], str], ...] = (lambda case: case.source, lambda case: case.spec.identity.kernels_of)


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """Errors where a constant stays at its prior, and with it all that were removed before: of rows in view, of those of a source
    that was left out, of an architecture that was, of rows to which nothing is fitted.

    An error is the root of the mean of the fit's objective, each source counting on an architecture by the square root of its
    rows: near a root mean square of log(predicted / measured), to which rows that are far off add little.
    """

    name: str
    value: float
    prior: float
    seen: float
    source: float
    architecture: float
    unfitted: float | None

    @property
    def unseen(self) -> float:
        """What a choice is judged by: the mean of the errors of rows that were not in view, of three kinds or two."""
        return float(np.mean([one for one in (self.source, self.architecture, self.unfitted) if one is not None]))


def selection(refits: Refits, tell: Callable[[str], None] = lambda text: None) -> list[Removal]:
    """The constants in the order in which they are removed, the one first that rows not in view miss least; before them the fit
    with all, which has no name.

    x_F = prior, x_free = x* - H^-1 (g + H_F (prior - x*))        (of the rows that are left in, to first order)

    H, g: `normal_equations` at the optimum x*; one constant at a time is removed (backward elimination).
    """
    names, prior = refits.problem.names, refits.problem.prior
    counts = Counter(keys := [tuple(key(case) for key in GROUPS) for case in refits.cases])
    worth, fitted = np.array([counts[key] ** -0.5 for key in keys]), refits.weight > 0.0
    shares = [worth * rows for rows in (fitted, ~fitted) if rows.any()]
    folds = [_folds([""] * len(keys)), *(_folds([key[i] for key in keys]) for i in range(len(GROUPS)))]
    equations = [_equations(refits, fold, held=bool(i)) for i, fold in enumerate(folds)]

    def removed(gone: Sequence[int], name: str = "") -> Removal:
        free = np.setdiff1d(np.arange(len(names)), gone)
        off = []
        for fold, (curvature, gradient) in zip(folds, equations, strict=True):
            step = np.zeros(gradient.shape)
            step[:, gone] = (prior - refits.logs)[list(gone)]
            right = -(gradient + np.einsum("fij,fj->fi", curvature, step))[:, free, None]
            step[:, free] = np.linalg.solve(curvature[:, free[:, None], free], right)[..., 0]
            lowest, highest = (bound - refits.logs for bound in refits.problem.bounds)
            errors = refits.errors + np.einsum("rp,rp->r", refits.slopes, np.clip(step, lowest, highest)[fold])
            loss = 2.0 * (np.sqrt(1.0 + (errors / SOFT) ** 2) - 1.0)
            off += [SOFT * float(np.sqrt(share @ loss / share.sum())) for share in shares]
        at = names.index(name) if name else 0
        value, before = (float(np.exp(x[at])) if name else 0.0 for x in (refits.logs, prior))
        seen, source, architecture = off[:: len(shares)]
        return Removal(name=name, value=value, prior=before, seen=seen, source=source, architecture=architecture,
                       unfitted=None if fitted.all() else off[1])  # fmt: skip

    path, gone = [removed([])], list[int]()
    while len(gone) < len(names):
        tell(f"{len(gone)} of {len(names)} constants removed")
        left = [i for i in range(len(names)) if i not in gone]
        path.append(min((removed([*gone, i], names[i]) for i in left), key=lambda removal: removal.unseen))
        gone.append(names.index(path[-1].name))
    return path


def _folds(keys: Sequence[str]) -> NDArray[np.intp]:
    """The number of the fold of each row, [R]."""
    return np.unique(keys, return_inverse=True)[1]


def _equations(refits: Refits, fold: NDArray[np.intp], held: bool) -> tuple[Array, Array]:
    """Curvature [F, P, P] and gradient [F, P] of the rows that each fold leaves in: all others, or its own if none is `held`."""
    left = refits.logs - refits.problem.prior
    found = [normal_equations(refits.slopes[use], refits.errors[use], refits.weight[use], left)
             for use in ((fold != i) == held for i in range(int(fold.max()) + 1))]  # fmt: skip
    return np.array([curvature for curvature, _ in found]), np.array([gradient for _, gradient in found])


def normal_equations(slopes: Array, errors: Array, weight: Array, left: Array) -> tuple[Array, Array]:
    """Curvature [P, P] and gradient [P] of the fit's objective, by which a Gauss-Newton step ends at -curvature^-1 gradient.

    S^T W S + p^2 I and S^T W e + p^2 left, W = w^2 / sqrt(1 + (w e / soft)^2)        (iteratively reweighted least squares)

    slopes: S, [R, P]; errors: e, [R]; weight: w, [R]; left: how far the logs of the constants have left their priors, [P]
    p: pull of a prior. Source: Holland and Welsch 1977, Robust regression using iteratively reweighted least-squares.
    """
    count = weight**2 / np.sqrt(1.0 + (weight * errors / SOFT) ** 2)
    return slopes.T @ (count[:, None] * slopes) + PULL**2 * np.eye(left.size), slopes.T @ (count * errors) + PULL**2 * left
