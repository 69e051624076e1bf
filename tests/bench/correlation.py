"""How far two GPUs share the error of a prediction: `python tests/bench/correlation.py`.

Pairs of rows of networks.csv that constants may be fitted to: two GPUs, the same network, task, batch and precision; of one
source and stack, or of two stacks. `SAME_STACK` of archsim/study/ranking.py is the first figure, rounded.
"""

from __future__ import annotations

import itertools
from collections import defaultdict

import numpy as np

from archsim.base.files import data_folder
from archsim.calibration.constants import default
from archsim.evidence.case import Case
from archsim.evidence.readers import read
from archsim.validate.interval import log_errors
from archsim.validate.predict import predict

METRICS = ("latency_s", "throughput_per_s")


def main() -> None:
    """Print both correlations."""
    cases, _ = read(data_folder("reports/published").joinpath("networks.csv"))
    timed = [c for c in cases if c.metric in METRICS and c.split == "calibrate" and c.spec.kind == "gpu"]
    groups: dict[tuple[object, ...], list[tuple[Case, float]]] = defaultdict(list)
    for case, log in zip(timed, log_errors(timed, predict(timed, default())).tolist(), strict=True):
        groups[case.label, case.task, case.batch, case.precision].append((case, log))
    pairs = [pair for group in groups.values() for pair in itertools.permutations(group, 2)]
    apart = [(a, b) for a, b in pairs if a[0].hardware != b[0].hardware]
    same = [(a[1], b[1]) for a, b in apart if (a[0].source, a[0].stack_id) == (b[0].source, b[0].stack_id)]
    other = [(a[1], b[1]) for a, b in apart if a[0].stack_id != b[0].stack_id]
    for name, found in (("one source and stack", same), ("two stacks", other)):
        both = np.array(found)  # every pair both ways round, so that it does not matter which comes first
        print(f"{name}: correlation {np.corrcoef(both.T)[0, 1]:.2f} of {len(both) // 2} pairs")


if __name__ == "__main__":
    main()
