"""Error against time for each fidelity, on a sample of published rows of networks on GPUs: `python tests/bench/ladder.py [ROWS]`.

Each row is an estimate of its own, as a user would ask for it; what the cycle model remembers of earlier runs is left out.
"""

from __future__ import annotations

import os
import random
import sys
import time
from dataclasses import replace

import numpy as np

from archsim.calibration.constants import default
from archsim.estimation.fidelity import FIDELITIES
from archsim.estimation.measured import request_of, value_of
from archsim.estimation.pipeline import lowered_of, priced, scheduled
from archsim.evidence.case import Case
from archsim.evidence.readers import read_files
from archsim.evidence.shipped import shipped_files

ROWS, SEED = 120, 7


def rows(count: int) -> list[Case]:
    """A sample of the times of whole networks on GPUs."""
    cases, _ = read_files([file for file in shipped_files() if file.name == "networks.csv"])
    timed = [case for case in cases if case.spec.kind == "gpu" and case.metric in ("latency_s", "throughput_per_s")]
    return random.Random(SEED).sample(timed, min(count, len(timed)))


def main() -> None:
    """Print one line for each fidelity."""
    os.environ["ARCHSIM_MEMO"] = "off"  # before the memo is opened
    sample = rows(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS)
    sources, devices = {case.source for case in sample}, {case.hardware for case in sample}
    print(f"{len(sample)} rows of {len(sources)} sources on {len(devices)} GPUs")
    for name, fidelity in FIDELITIES.items():
        errors, spent = list[float](), list[float]()
        for case in sample:
            request = replace(request_of(case, default()), fidelity=fidelity)
            begin = time.process_time()
            lowered = lowered_of(request)
            value = value_of(case, request, scheduled(request, lowered, priced(request, lowered.kernels)))
            spent.append(time.process_time() - begin)
            errors.append((case.measured / value if case.metric == "throughput_per_s" else value / case.measured) - 1.0)
        off = np.abs(errors)
        print(
            f"{name:<11} median {100 * np.median(off):5.1f} %  90 % below {100 * np.quantile(off, 0.9):5.1f} %  "
            f"bias {100 * np.median(errors):+6.1f} %  {1e3 * np.median(spent):8.1f} ms  mean {1e3 * np.mean(spent):8.1f} ms"
        )


if __name__ == "__main__":
    main()
