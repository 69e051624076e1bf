"""Single kernels in PyTorch on a CUDA GPU: recorded as a graph of many calls, replayed, and named by the profiler."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from archsim.measure.torch_calls import CALLS, constants_of, shapes_of
from archsim.measure.torch_session import DTYPES, TorchMode, allow_tf32, by_events, recorded
from archsim.trace.trace import BoundOp

CALLS_OF_GRAPH = 20
LEAST_ROUNDS, LEAST_TIMED_S = 5, 0.01  # rounds and time over which a median is taken


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenKernel:
    """One kernel as the profiler saw it: its name, blocks and threads along each direction, and what a thread occupies."""

    name: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    registers: int
    shared_B: int
    time_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelReading:
    """Time of one call in a replayed graph [s], its quartiles, and the kernels of one call."""

    time_s: float
    low_s: float
    high_s: float
    launches: tuple[SeenKernel, ...]


class KernelBench:
    """Times ops alone, with operands that the call before left in the caches."""

    def __init__(self, torch: Any, mode: TorchMode, precision: str) -> None:
        self._torch, self._mode, self._precision = torch, mode, precision
        self._dtype = getattr(torch, DTYPES[precision])
        torch.manual_seed(0)

    def measure(self, op: BoundOp) -> KernelReading:
        """Median time of one call; Unsupported and RuntimeError are those of PyTorch."""
        torch = self._torch
        allow_tf32(torch, self._precision == "tf32")  # one setting for all benches of a process
        call = self._call(op)
        with torch.inference_mode():
            replay = recorded(torch, call, CALLS_OF_GRAPH)
            replay()
            rounds: list[float] = []
            while len(rounds) < LEAST_ROUNDS or sum(rounds) < LEAST_TIMED_S:
                rounds.append(by_events(torch, replay))
            times = sorted(seconds / CALLS_OF_GRAPH for seconds in rounds[1:])
            with profiled(torch) as seen:
                call()
                torch.cuda.synchronize()
        quarter = len(times) // 4
        return KernelReading(time_s=median(times), low_s=times[quarter], high_s=times[-1 - quarter], launches=tuple(seen))

    def _call(self, op: BoundOp) -> Callable[[], Any]:
        inputs = [self._tensor(shape) for shape in op.input_shapes]
        weights = [self._tensor(shape) for shape in shapes_of(op)]
        weights += [values.to("cuda") for values in constants_of(self._torch, op)]
        return lambda: CALLS[op.kind.op](self._torch, op, inputs, weights)

    def _tensor(self, shape: Sequence[int]) -> Any:
        made = self._torch.randn(tuple(shape), device="cuda", dtype=self._dtype)
        if self._mode.channels_last and made.dim() == 4:
            made = made.contiguous(memory_format=self._torch.channels_last)
        return made


@contextmanager
def profiled(torch: Any) -> Iterator[list[SeenKernel]]:
    """The kernels that run within the block, in the order of their start, there after the block."""
    seen: list[SeenKernel] = []
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        yield seen
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(file))
        seen += launches_of(json.loads(file.read_text(encoding="utf-8"))["traceEvents"])


def launches_of(events: Sequence[Mapping[str, Any]]) -> list[SeenKernel]:
    """The kernels among the events of a Chrome trace of PyTorch, whose times are in microseconds."""
    kernels = sorted((e for e in events if e.get("cat") == "kernel"), key=lambda e: float(e["ts"]))
    return [SeenKernel(name=str(e["name"]), grid=tuple(e["args"]["grid"]), block=tuple(e["args"]["block"]),
                   registers=int(e["args"].get("registers per thread", 0)), shared_B=int(e["args"].get("shared memory", 0)),
                   time_s=float(e["dur"]) * 1e-6) for e in kernels]  # fmt: skip
