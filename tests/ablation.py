"""What each key of a stack and each chosen constant is worth on published rows: `python -m tests.ablation [KEY ...]`.

One after the other is left out and nothing is fitted again: every stack has the default of the key, a constant is halved and
doubled. Rows whose stack has the default anyway keep their prediction. A key is admitted that makes the median of two sources or
of three devices worse by at least 0.3 points when it is left out, or without which a row has no prediction. The table is
`reports/validation/ablation.csv`; with KEYs only their lines are printed.
"""

from __future__ import annotations

import argparse
import csv
import gc
import multiprocessing
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from archsim.calibration.constants import Calibration, default
from archsim.evidence.case import Case
from archsim.evidence.family import serving_files
from archsim.evidence.readers import read_files
from archsim.stack import catalog as stacks
from archsim.stack.stack import STACK_KEYS
from archsim.validation.evaluation import ValidationSettings, errors, left_out, predictions
from archsim.validation.predict import Group, evaluate, prepare

FILE = Path(__file__).parents[1] / "reports" / "validation" / "ablation.csv"
HEAD = ("key", "stacks", "rows", "median_before", "median_after", "sources", "devices", "verdict")
LEAST = 0.3  # points of a median error
SOURCES, DEVICES = 2, 3  # that must get worse by as much
TOLD = 0.005  # points that a table shows
SAME = 1e-9  # relative

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """The rows and their predictions with nothing left out."""

    cases: Sequence[Case]
    predicted: Array

    @cached_property
    def groups(self) -> list[Group]:
        """The rows lowered, which no constant changes."""
        return prepare(self.cases)

    def without(self, key: str) -> list[Array]:
        """The predictions without a key or a constant; those of a constant that is halved and doubled."""
        if key not in STACK_KEYS:
            given = default()
            return [evaluate(self.groups, given.with_values({key: given[key] * by})) for by in (0.5, 2.0)]
        changed, _ = left_out(self.cases, default(), frozenset({key}))
        moved = [i for i, (one, other) in enumerate(zip(self.cases, changed, strict=True)) if one is not other]
        found = self.predicted.copy()
        found[moved] = predicted([changed[i] for i in moved], default())
        return [found]

    def line(self, key: str) -> dict[str, str]:
        """The line of the table for a key: what moves most without it, and whether that admits it."""
        before, of = self.errors(self.predicted), dict[str, list[tuple[float, str]]]()
        found = [self.errors(values) for values in self.without(key)]
        rows = sum(np.abs(after - before) > SAME * (1.0 + before) for after in found)
        lost = sum(np.isnan(after) & ~np.isnan(before) for after in found)
        for name in ("source", "hardware"):
            moves = [changes(before, after, [getattr(case, name) for case in self.cases]) for after in found]
            of[name] = sorted(((max(one[group] for one in moves), group) for group in moves[0]), reverse=True)
        enough = any(sum(by >= LEAST for by, _ in of[name]) >= least
                     for name, least in (("source", SOURCES), ("hardware", DEVICES)))  # fmt: skip
        all_of = [100 * float(np.nanmedian(error)) for error in (before, *found)]
        set_by = sum(key in STACK_KEYS and stack.without([key]) is not stack for stack in map(stacks.find, stacks.names()))
        said = [" ".join(f"{group} {by:+.2f}" for by, group in _largest(of[name], most))
                for name, most in (("source", SOURCES), ("hardware", DEVICES))]  # fmt: skip
        return dict(zip(HEAD, (
            key, str(set_by) if key in STACK_KEYS else "", str(int(np.count_nonzero(rows))), f"{all_of[0]:.3f}",
            " ".join(f"{value:.3f}" for value in all_of[1:]), *said,
            "admitted" if enough or np.any(lost) else "fails",
        ), strict=True))  # fmt: skip

    def errors(self, values: Array) -> Array:
        """How far predictions are off, without sign."""
        return np.abs(errors(self.cases, values))


def _largest(moves: Sequence[tuple[float, str]], most: int) -> list[tuple[float, str]]:
    told = [move for move in moves if abs(move[0]) >= TOLD]
    return sorted(sorted(told, key=lambda move: -abs(move[0]))[:most], reverse=True)


def changes(before: Array, after: Array, groups: Sequence[str]) -> dict[str, float]:
    """By how many points the median error of each group grows; more is worse.

    >>> changes(np.array([0.1, 0.2, 0.3]), np.array([0.1, 0.25, 0.3]), ["a", "a", "b"])
    {'a': 2.5, 'b': 0.0}
    """
    own: dict[str, list[int]] = defaultdict(list)
    for i, group in enumerate(groups):
        if not np.isnan(before[i]) and not np.isnan(after[i]):
            own[group].append(i)
    return {group: round(100 * float(np.median(after[rows]) - np.median(before[rows])), 6) for group, rows in own.items()}


def predicted(cases: Sequence[Case], calibration: Calibration) -> Array:
    """Predictions of rows, NaN where none is possible."""
    settings = ValidationSettings(calibration=calibration, baselines=())
    return predictions(cases, settings)[0] if cases else np.empty(0)


def rows(most: int | None) -> list[Case]:
    """The rows of the corpus and of served models; `most` of each source, device and stack, evenly spread, where it is given."""
    cases = [case for files in ((), serving_files()) for case in read_files(files)[0] if not case.simulated]
    own: dict[tuple[str, str, str], list[Case]] = defaultdict(list)
    for case in cases:
        own[case.source, case.hardware, case.stack.id].append(case)
    return [case for group in own.values() for case in group[:: -(-len(group) // (most or len(group)))]]


def lines(keys: Sequence[str], corpus: Corpus, workers: int) -> Iterator[Mapping[str, str]]:
    """The lines of keys as they are found; forked workers share the rows."""
    _SHARED.append(corpus)
    gc.freeze()
    with multiprocessing.get_context("fork").Pool(workers) as pool:
        yield from pool.imap(_line, keys, chunksize=1)


_SHARED: list[Corpus] = []


def _line(key: str) -> dict[str, str]:
    return _SHARED[0].line(key)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.ablation", description=__doc__.partition("\n")[0])
    parser.add_argument("keys", nargs="*", metavar="KEY", help="keys of stacks and constants that are chosen, not fitted (all)")
    parser.add_argument("--most", type=int, metavar="N", help="look at N rows of each source, device and stack (all)")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    asked = parser.parse_args()
    chosen = [name for name, constant in default().constants.items() if not constant.fitted]
    if unknown := [key for key in asked.keys if key not in (*STACK_KEYS, *chosen)]:
        parser.error(f"neither a key of a stack with a default nor a chosen constant: {', '.join(unknown)}")
    every = rows(asked.most)
    values = predicted(every, default())
    corpus = Corpus(cases=[case for case, value in zip(every, values, strict=True) if value > 0], predicted=values[values > 0])
    print(f"{len(corpus.cases):,} rows", file=sys.stderr, flush=True)
    found = []
    for line in lines(asked.keys or [*STACK_KEYS, *chosen], corpus, asked.workers):
        found.append(line)
        print(" | ".join(line.values()), flush=True)
    if not asked.keys:
        with FILE.open("w", encoding="utf-8", newline="") as stream:
            table = csv.DictWriter(stream, HEAD, lineterminator="\n")
            table.writeheader()
            table.writerows(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
