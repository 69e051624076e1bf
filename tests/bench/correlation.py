"""How far two predictions share their error: `python -m tests.bench correlation`.

Pairs of rows of networks.csv that constants may be fitted to: the same network, task, batch and precision, on two devices or with
two stacks. `SAME_STACK` and `TWO_STACKS` of archsim/study/ranking.py are the figures of two GPUs, rounded to tenths.

Then pairs of rows of one device, network, stack and source, with two batches or under two power limits (power_caps.csv): how far
the logs of their ratios are off, which are `LIMITED` and `BATCHES` of archsim/study/certainty.py.
"""

from __future__ import annotations

import itertools
import math
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from importlib.resources.abc import Traversable
from pathlib import Path

import numpy as np

from archsim.base.files import data_folder
from archsim.calibration.constants import default
from archsim.evidence.case import Case
from archsim.evidence.readers import read
from archsim.validation.interval import log_errors
from archsim.validation.predict import predict

from .corpus import first_rows
from .figure import arguments

FILES = ("networks.csv", "power_caps.csv")
Folder = Path | Traversable
PUBLISHED: Folder = data_folder("reports/published")
METRICS = ("latency_s", "throughput_per_s")


def kinds(a: Case, b: Case) -> str:
    """The kinds of both devices, in one order."""
    return "+".join(sorted((a.spec.kind, b.spec.kind)))


# what a pair is called -> whether two cases are such a pair
PAIRS: dict[str, Callable[[Case, Case], bool]] = {
    "two GPUs, one source and stack": lambda a, b: (
        kinds(a, b) == "gpu+gpu" and a.hardware != b.hardware and (a.source, a.stack_id) == (b.source, b.stack_id)
    ),
    "two GPUs, two stacks": lambda a, b: kinds(a, b) == "gpu+gpu" and a.hardware != b.hardware and a.stack_id != b.stack_id,
    "one GPU, two stacks": lambda a, b: kinds(a, b) == "gpu+gpu" and a.hardware == b.hardware and a.stack_id != b.stack_id,
    "a CPU and a GPU": lambda a, b: kinds(a, b) == "cpu+gpu",
    "one CPU, two stacks": lambda a, b: kinds(a, b) == "cpu+cpu" and a.hardware == b.hardware and a.stack_id != b.stack_id,
    "two CPUs": lambda a, b: kinds(a, b) == "cpu+cpu" and a.hardware != b.hardware,
}


def correlations(folder: Folder = PUBLISHED) -> dict[str, tuple[float, int, int]]:
    """For each kind of pair the correlation of the log errors, the number of pairs, and of pairs of devices."""
    cases, _ = read(folder.joinpath(FILES[0]))
    timed = [c for c in cases if c.metric in METRICS and c.split == "calibrate"]
    groups: dict[tuple[object, ...], list[tuple[Case, float]]] = defaultdict(list)
    for case, log in zip(timed, log_errors(timed, predict(timed, default())).tolist(), strict=True):
        groups[case.label, case.task, case.batch, case.precision].append((case, log))
    pairs = [pair for group in groups.values() for pair in itertools.permutations(group, 2)]
    found = {}
    for name, belongs in PAIRS.items():
        mine = [(a, b) for a, b in pairs if belongs(a[0], b[0])]
        both = np.array([(a[1], b[1]) for a, b in mine])  # every pair both ways round, so that the order does not matter
        devices = {frozenset((a[0].hardware, b[0].hardware)) for a, b in mine}
        found[name] = _correlation(both), len(both) // 2, len(devices)
    return found


def settings(folder: Folder = PUBLISHED) -> dict[str, tuple[float, float, int]]:
    """For each kind of pair of settings the correlation, the 80 % quantile of what the log of a ratio is off, and the pairs."""
    found = {}
    batches = _logs(folder.joinpath(FILES[0]), lambda c: (c.label, c.task, c.precision, c.hardware, c.stack_id, c.source),
                    lambda c: c.batch)  # fmt: skip
    found["time, two batches"] = _shared(batches["time"])
    limits = _logs(folder.joinpath(FILES[1]), lambda c: (c.label, c.task, c.precision, c.hardware, c.stack_id, c.source, c.batch),
                   lambda c: c.limit)  # fmt: skip
    found |= {f"{what}, two power limits": _shared(limits[what]) for what in ("time", "power", "energy")}
    return found


Pairs = list[tuple[float, float]]
WHAT = {"latency_s": "time", "throughput_per_s": "time", "power_w": "power", "energy_j": "energy"}


def _logs(file: Folder, cell: Callable[[Case], object], setting: Callable[[Case], object]) -> dict[str, Pairs]:
    """Log errors of the rows of each cell, in pairs of different settings, by what was measured."""
    cases, _ = read(file)
    cases = [c for c in cases if c.metric in WHAT and c.split == "calibrate"]
    groups: dict[tuple[str, object], list[tuple[object, float]]] = defaultdict(list)
    for case, log in zip(cases, log_errors(cases, predict(cases, default())).tolist(), strict=True):
        groups[WHAT[case.metric], cell(case)].append((setting(case), log))
    pairs: dict[str, Pairs] = defaultdict(list)
    for (what, _), rows in groups.items():
        pairs[what] += [(a[1], b[1]) for a, b in itertools.permutations(rows, 2) if a[0] != b[0]]
    return pairs


def _shared(pairs: Pairs) -> tuple[float, float, int]:
    both = np.array(pairs).reshape(-1, 2)
    off = float(np.quantile(abs(both[:, 0] - both[:, 1]), 0.8)) if pairs else math.nan
    return _correlation(both), off, len(both) // 2


def _correlation(both: np.ndarray) -> float:
    """Of the columns; nothing is known of fewer than two pairs, each of which stands there both ways round."""
    return float(np.corrcoef(both.T)[0, 1]) if len(both) > 2 else math.nan


def main(words: Sequence[str]) -> None:
    """Print all correlations."""
    if arguments(__doc__).parse_args(words).smoke:
        with tempfile.TemporaryDirectory() as some:
            for name in FILES:
                first_rows(some, name, 60)
            show(Path(some))
    else:
        show(PUBLISHED)


def show(folder: Folder) -> None:
    """The correlations of the rows of a folder."""
    for name, (correlation, pairs, devices) in correlations(folder).items():
        print(f"{name}: correlation {correlation:.2f} of {pairs} pairs, of {devices} pairs of devices")
    for name, (correlation, off, count) in settings(folder).items():
        print(f"{name}: correlation {correlation:.2f}, 80 % of the logs of ratios within {off:.3f}, of {count} pairs")
