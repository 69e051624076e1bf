"""How far two predictions share their error: `python tests/bench/correlation.py`.

Pairs of rows of networks.csv that constants may be fitted to: the same network, task, batch and precision, on two devices or with
two stacks. `SAME_STACK` and `TWO_STACKS` of archsim/study/correlation.py are the figures of two GPUs, rounded to tenths.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable

import numpy as np

from archsim.base.files import data_folder
from archsim.calibration.constants import default
from archsim.evidence.case import Case
from archsim.evidence.readers import read
from archsim.validation.interval import log_errors
from archsim.validation.predict import predict

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


def correlations() -> dict[str, tuple[float, int, int]]:
    """For each kind of pair the correlation of the log errors, the number of pairs, and of pairs of devices."""
    cases, _ = read(data_folder("reports/published").joinpath("networks.csv"))
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
        found[name] = float(np.corrcoef(both.T)[0, 1]), len(both) // 2, len(devices)
    return found


def main() -> None:
    """Print all correlations."""
    for name, (correlation, pairs, devices) in correlations().items():
        print(f"{name}: correlation {correlation:.2f} of {pairs} pairs, of {devices} pairs of devices")


if __name__ == "__main__":
    main()
