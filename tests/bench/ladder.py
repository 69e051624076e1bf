"""Error against time for each fidelity, on a sample of published rows of networks on GPUs: `python tests/bench/ladder.py [ROWS]`.

`--freeze` writes the table to `reports/ladder/ladder.json`; then `python tests/readme/regenerate.py` puts it into the README and
draws the picture.

Each row is an estimate of its own, as a user would ask for it: what is remembered of earlier ones is left out. Times are CPU
times, with the packages and the compiled loop loaded before. `--smoke` takes a few rows and writes nothing.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources.abc import Traversable
from pathlib import Path

import numpy as np

from archsim.calibration.constants import default
from archsim.estimation.fidelity import FIDELITIES, Fidelity
from archsim.estimation.measured import request_of, value_of
from archsim.estimation.pipeline import lowered_of, priced, scheduled
from archsim.evidence.case import Case
from archsim.evidence.family import shipped_files
from archsim.evidence.readers import read_files

ROWS, SEED = 120, 7
NETWORKS = "networks.csv"
SCHEMA = "archsim-ladder/1"
MODEL = ("archsim.lower", "archsim.cost", "archsim.cycle", "archsim.estimation")
FOLDER = Path(__file__).parents[2] / "reports" / "ladder"


def forget() -> None:
    """Empty what keeps results of the model between estimates; the compiled loop stays."""
    for name, module in tuple(sys.modules.items()):
        if name.startswith(MODEL):
            for value in tuple(vars(module).values()):
                if isinstance(value, functools._lru_cache_wrapper) and value.__name__ != "compiled":
                    value.cache_clear()


def rows(count: int, files: Sequence[Path | Traversable] = ()) -> list[Case]:
    """A sample of the times of whole networks on GPUs."""
    cases, _ = read_files(files or [file for file in shipped_files() if file.name == NETWORKS])
    timed = [case for case in cases if case.spec.kind == "gpu" and case.metric in ("latency_s", "throughput_per_s")]
    return random.Random(SEED).sample(timed, min(count, len(timed)))


def error(case: Case, fidelity: Fidelity) -> float:
    """Predicted time over measured time, less one."""
    request = replace(request_of(case, default()), fidelity=fidelity)
    lowered = lowered_of(request)
    value = value_of(case, request, scheduled(request, lowered, priced(request, lowered.kernels)))
    return (case.measured / value if case.metric == "throughput_per_s" else value / case.measured) - 1.0


def step(fidelity: Fidelity, sample: Sequence[Case]) -> dict[str, float | str | int]:
    """The errors of a fidelity over the rows, and the time of an estimate."""
    errors, spent = list[float](), list[float]()
    for case in (sample[0], *sample):  # the first one twice: packages and machine code are loaded
        forget()
        begin = time.process_time()
        errors.append(error(case, fidelity))
        spent.append(time.process_time() - begin)
    off = np.abs(errors[1:])
    return {
        "fidelity": fidelity.name, "median": round(float(np.median(off)), 4), "p90": round(float(np.quantile(off, 0.9)), 4),
        "bias": round(float(np.median(errors[1:])), 4), "seconds": _rounded(np.median(spent[1:])),
        "longest": _rounded(np.max(spent[1:])),
    }  # fmt: skip


def _rounded(seconds: float) -> float:
    """Two digits, which another run gives too."""
    return float(f"{seconds:.2g}")


def ladder(sample: Sequence[Case]) -> dict[str, object]:
    """The record of all fidelities over the same rows."""
    return {
        "schema": SCHEMA, "command": f"python tests/bench/ladder.py {len(sample)} --freeze", "rows": len(sample),
        "sources": len({case.source for case in sample}), "devices": len({case.hardware for case in sample}),
        "fidelities": [step(fidelity, sample) for fidelity in FIDELITIES.values()],
    }  # fmt: skip


def few() -> list[Case]:
    """Two rows of the first ones, so that not all have to be read."""
    from tests.bench.corpus import first_rows

    with tempfile.TemporaryDirectory() as folder:
        return rows(2, [first_rows(folder, NETWORKS, 40)])


def main(given: Sequence[str] | None = None) -> None:
    """Print one line for each fidelity; write the record where that is asked for."""
    os.environ["ARCHSIM_MEMO"] = "off"  # before the memo is opened
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("rows", nargs="?", type=int, default=ROWS)
    asked.add_argument("--freeze", action="store_true")
    asked.add_argument("--smoke", action="store_true")
    words = asked.parse_args(given)
    record = ladder(few() if words.smoke else rows(words.rows))
    print(f"{record['rows']} rows of {record['sources']} sources on {record['devices']} GPUs")
    for s in record["fidelities"]:
        print(f"{s['fidelity']:<11} median {100 * s['median']:5.1f} %  90 % below {100 * s['p90']:5.1f} %  "
              f"bias {100 * s['bias']:+6.1f} %  {1e3 * s['seconds']:8.1f} ms  at most {1e3 * s['longest']:8.1f} ms")  # fmt: skip
    if words.freeze and not words.smoke:
        FOLDER.mkdir(parents=True, exist_ok=True)
        (FOLDER / "ladder.json").write_text(json.dumps(record, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
