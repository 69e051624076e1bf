"""Fit the share of fans to powers at the wall, with each system held out: `python -m tests.bench wall MLPERF.csv`.

The rows are those of `system_power_w` and `system_energy_j` of split `calibrate`. The share is the one with the least mean of
|log(predicted / measured)| over systems. The errors of a system are those with the share that all others give; as generic, its
rows are predicted as if no file described it and nobody knew its power limit. `--smoke` takes made-up rows and writes nothing.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from archsim.calibration.constants import default
from archsim.estimation.measured import request_of
from archsim.estimation.pipeline import run
from archsim.estimation.wall import wall_power
from archsim.evidence.case import Case
from archsim.evidence.readers import read
from archsim.node.system import usual
from archsim.validation.interval import quantile

from .figure import arguments

FILE = Path(__file__).parents[2] / "reports" / "calibration" / "wall" / "wall.toml"
SHARES = np.arange(0.0, 0.2001, 0.0025)
HEAD = "source,network,hardware,stack,task,batch,precision,metric,value,split,source_ref"
ROW = "mlperf,resnet_50,a100_pcie_80gb,tensorrt-8,inference,2048,int8,system_power_w,2000,calibrate,r: /results/{}/Offline"
SYSTEMS = ("A100-PCIe-80GBx8_TRT", "A100-PCIe-80GBx8_TRT_MaxQ")
Row = tuple[str, np.ndarray]  # the system, and log(predicted / measured) for each of the shares


def row_of(case: Case) -> Row:
    """The errors of a row over all shares."""
    request = request_of(case, default())
    result = run(request)
    latency = float(result.latency_s[0])
    device_w = float(result.total_energy_j[0]) / latency
    assert case.system is not None
    host = None if case.spec.kind == "cpu" else request.host
    scale = 1.0 if case.metric == "system_power_w" else latency
    found = [wall_power(device_w, case.spec.device, host, *case.system, float(share)).computer_w * scale for share in SHARES]
    return case.fields["source_ref"].split("/results/")[1].split("/")[0], np.log(np.array(found) / case.measured)


def best(rows: Sequence[Row]) -> int:
    """The position of the share with the least mean error over systems."""
    systems = sorted({name for name, _ in rows})
    return int(np.argmin(np.mean([np.mean([np.abs(e) for n, e in rows if n == name], axis=0) for name in systems], axis=0)))


def spread(rows: Sequence[Row], origin: str, least: float = 0.0) -> tuple[str, float]:
    """The table of a class, errors of each system with the share that all others give; half of its interval, `least` or more."""
    off = [(name, errors[best([row for row in rows if row[0] != name])]) for name, errors in rows]
    values = np.array([error for _, error in off])
    weights = np.array([sum(n == name for n, _ in off) ** -0.5 for name, _ in off])
    half = max(least, quantile(np.abs(values), weights, 0.8))
    share = np.abs(np.expm1(values))
    return (f"rows = {len(values)}\nlow = {-half:.4f}\nhigh = {half:.4f}\nmedian = {np.median(share):.4f}\n"
            f'p90 = {np.percentile(share, 90):.4f}\norigin = "{origin}"\n'), half  # fmt: skip


def main(words: Sequence[str]) -> None:
    """Fit, print the error of each row, write the file."""
    parser = arguments(__doc__, file={"nargs": "?"})
    asked = parser.parse_args(words)
    if asked.smoke:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "mlperf.csv"
            file.write_text("\n".join([HEAD, *(ROW.format(system) for system in SYSTEMS)]) + "\n", "utf-8")
            fitted(str(file))
    elif asked.file is None:
        parser.error("MLPERF.csv")
    else:
        FILE.write_text(fitted(asked.file), "utf-8")


def fitted(file: str) -> str:
    """The text of the file of what is fitted; prints the error of each row."""
    cases = [case for case in read(file)[0] if case.system is not None and case.split == "calibrate"]
    rows = [row_of(case) for case in cases]
    unknown = []
    for case in cases:
        request = request_of(case, default())
        assert case.system is not None
        system = usual(case.spec.device, request.host, request.host_cpu.identity.id)
        unknown.append(row_of(replace(case, limit=None, system=(system, case.system[1]))))
    at = best(rows)
    for (name, errors), (_, other) in zip(rows, unknown, strict=True):
        held = errors[best([row for row in rows if row[0] != name])]
        print(f"{name:60} {np.expm1(errors[at]):+.1%}, held out {np.expm1(held):+.1%}, as generic {np.expm1(other[at]):+.1%}")
    systems = len({name for name, _ in rows})
    described, half = spread(rows, f"held-out systems, {systems} of them")
    generic, _ = spread(unknown, f"{systems} systems, each as if no file described it and no limit were known", half)
    return (
        "# Power at the wall: what is fitted, and errors on systems that were held out; tests/bench/wall.py writes it.\n"
        f'fans = {SHARES[at]:.4f}\norigin = "{len(rows)} rows of {systems} systems of MLPerf Inference v2.1, v3.0"\n\n'
        f"[described]\n{described}\n[generic]\n{generic}"
    )
