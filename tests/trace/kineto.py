"""Profiles of a GPU in the form in which PyTorch's profiler writes them, drawn up for tests and benchmarks.

A step is one layer of a transformer in fp16: a projection, attention as two products around a softmax, a copy into another
layout, an addition. Each call launches one kernel, behind which the device waits for the next.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

N, TOKENS, WIDTH, HEADS = 8, 128, 1024, 16
SIZE = WIDTH // HEADS
ROWS, SCORES, APART = [N, TOKENS, WIDTH], [N * HEADS, TOKENS, TOKENS], [N * HEADS, TOKENS, SIZE]
KEYS, IN_HEADS = [N * HEADS, SIZE, TOKENS], [N, HEADS, TOKENS, SIZE]
GEMM = "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn"
# call, shapes, values of what is no tensor, kernel, its time [us]
LAYER: tuple[tuple[str, list[list[int]], list[str], str, float], ...] = (
    ("aten::linear", [ROWS, [3 * WIDTH, WIDTH], [3 * WIDTH]], ["", "", ""], GEMM, 45.0),
    ("aten::bmm", [APART, KEYS], ["", ""], GEMM, 12.0),
    ("aten::div", [SCORES, []], ["", ""], "void at::native::vectorized_elementwise_kernel<4, DivFunctor>(int)", 8.0),
    ("aten::softmax", [SCORES, [], []], ["", "-1", ""], "void (anonymous namespace)::softmax_warp_forward(int)", 9.0),
    ("aten::bmm", [SCORES, APART], ["", ""], GEMM, 11.0),
    ("aten::contiguous", [IN_HEADS, []], ["", "0"], "void at::native::elementwise_kernel<direct_copy_kernel_cuda>(int)", 7.0),
    ("aten::linear", [ROWS, [WIDTH, WIDTH], [WIDTH]], ["", "", ""], GEMM, 18.0),
    ("aten::add", [ROWS, ROWS, []], ["", "", "1"], "void at::native::vectorized_elementwise_kernel<CUDAFunctor_add>(int)", 6.0),
)
GAP_US = 5.0  # that the device waits before each kernel


def events(steps: int, layers: int = 1) -> Iterator[dict[str, Any]]:
    """The events of a profile: steps, calls, launches, kernels, and a copy to the device in each step."""
    number, host, device = 0, 1000.0, 1020.0
    for step in range(steps):
        began = host
        copy = {"device": 0, "stream": 7, "bytes": 4096, "correlation": 10**9 + step}
        yield {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "pid": 0, "tid": 7, "ts": device,
               "dur": 3.0, "args": copy}  # fmt: skip
        device += 3.0
        for call, dims, values, kernel, took in LAYER * layers:
            number += 1
            types = ["c10::Half" if dim or (call == "aten::div" and place == 1) else ("Scalar" if values[place] else "")
                     for place, dim in enumerate(dims)]  # fmt: skip
            yield {"ph": "X", "cat": "cpu_op", "name": call, "pid": 1, "tid": 1, "ts": host, "dur": 8.0,
                   "args": {"External id": number, "Record function id": 0, "Sequence number": number, "Fwd thread id": 0,
                            "Concrete Inputs": values, "Input type": types, "Input Dims": dims, "Ev Idx": number}}  # fmt: skip
            yield {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": host + 4.0, "dur": 3.0,
                   "args": {"External id": number, "cbid": 211, "correlation": number}}  # fmt: skip
            yield {"ph": "s", "id": number, "pid": 1, "tid": 1, "ts": host + 4.0, "cat": "ac2g", "name": "ac2g"}
            device = max(device + GAP_US, host + 8.0)
            yield {"ph": "X", "cat": "kernel", "name": kernel, "pid": 0, "tid": 7, "ts": device, "dur": took,
                   "args": {"queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": number,
                            "registers per thread": 128, "shared memory": 49152, "blocks per SM": 1.5, "warps per SM": 12.0,
                            "grid": [8, 24, 1],
                            "block": [128, 1, 1], "est. achieved occupancy %": 19}}  # fmt: skip
            device += took
            host += 10.0
        host = max(host, device)
        yield {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1, "ts": began,
               "dur": host - began, "args": {}}  # fmt: skip


def write(path: Path, steps: int, layers: int = 1) -> None:
    """Write a profile of so many steps."""
    found = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-40GB"}],
             "traceEvents": [*events(steps, layers)], "traceName": "trace.json"}  # fmt: skip
    path.write_text(json.dumps(found, indent=2), "utf-8")
