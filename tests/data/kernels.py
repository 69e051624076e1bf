"""The tiles of cuBLAS 12 and cuDNN 9 on Hopper, from published profiles: `python tests/data/kernels.py` writes traces/kernels.

Each launch of `reports/published/hopper_kernels.csv.gz` has the name of its kernel, its block, registers and shared memory, as
`archsim profile --kernels` reads them from a trace. Tiles of a single launch are left out.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterator, Mapping
from math import prod

from archsim.base.files import data_folder
from archsim.stack.launched import Launch, rows_of, table_of

PROFILES, SOURCE = "hopper_kernels.csv.gz", "launches of PyTorch 2.11 on an H100: reports/published/hopper_kernels.csv.gz"
LEAST = 2
FILES = {"cublas-12": ("gemm_tensor",), "cudnn-9": ("conv_forward_tensor", "conv_gathered_tensor")}
SIZES = {"": ("fp16", "bf16"), "_word": ("tf32",)}  # of the name of a menu -> precisions
ANYWHERE = ("conv_gathered_tensor",)  # kernels for Ampere, which later architectures run too
ALSO = {"conv_forward_tensor": "conv_backward_data_tensor"}  # gradients of images, of which no launch is recorded


def launches(precisions: tuple[str, ...]) -> Iterator[Launch]:
    """All launches of kernels of these precisions."""
    text = gzip.decompress(data_folder("reports/published").joinpath(PROFILES).read_bytes()).decode()
    for row in csv.DictReader(line for line in io.StringIO(text) if not line.startswith("# ")):
        for ran in json.loads(row["kernel"] or "{}").get("ran", ()) if row["dtype"] in precisions else ():
            yield Launch(name=ran["name"], threads=prod(ran["block"]), registers=ran["registers"], shared=ran["shared"])


def tables() -> Mapping[str, str]:
    """The text of each file."""
    rows: dict[str, list[Mapping[str, str]]] = {name: [] for name in FILES}
    for suffix, precisions in SIZES.items():
        for row in rows_of(launches(precisions), "hopper", SOURCE, LEAST):
            for name in [name for name, roles in FILES.items() if row["role"] in roles]:
                roles = [row["role"], *([ALSO[row["role"]]] if row["role"] in ALSO else [])]
                own = {"role": " ".join(f"{role}{suffix}" for role in roles)}
                rows[name].append({**row, **own, **({"architectures": ""} if row["role"] in ANYWHERE else {})})
    return {name: table_of(found) for name, found in rows.items()}


if __name__ == "__main__":
    for name, text in tables().items():
        data_folder("traces/kernels").joinpath(f"{name}.csv").write_text(text, "utf-8")  # type: ignore[attr-defined]
