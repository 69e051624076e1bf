"""Networks in PyTorch, eager or compiled: on the CPU, or on a CUDA GPU timed by events."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

from archsim.base.errors import ArchsimError, UnknownName, Unsupported
from archsim.measure.onnx_session import feeds
from archsim.measure.timing import WARM_UP
from archsim.measure.torch_calls import CALLS, VARIANCES, attention_by_products, batch_norm_of_batch, constants_of, shapes_of
from archsim.trace.trace import BoundOp, BoundTrace

Device = str  # `cpu` or `cuda`
DTYPES = {"fp32": "float32", "tf32": "float32", "fp16": "float16", "bf16": "bfloat16"}
TASKS = ("inference", "forward_backward")


class NoTorch(ArchsimError):
    """PyTorch is not installed. It is no extra, because users need the build for their hardware."""

    exit_code = 69


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchMode:
    """How PyTorch runs a network.

    compiled: the mode of torch.compile; none: op by op
    recorded: op by op, recorded once as a CUDA graph, which each run replays
    channels_last: images and weights of convolutions lie channels last
    by_products: attention is two products around a softmax
    """

    device: Device = "cuda"
    compiled: str = ""
    recorded: bool = False
    channels_last: bool = False
    by_products: bool = False


MODES: dict[str, TorchMode] = {  # by the stack that models it
    "pytorch-cpu": TorchMode(device="cpu"),
    "pytorch-2": TorchMode(),
    "pytorch-2-eager": TorchMode(by_products=True),
    "pytorch-2-channels-last": TorchMode(channels_last=True),
    "pytorch-2-cuda12": TorchMode(),
    "pytorch-2-cuda12-eager": TorchMode(by_products=True),
    "pytorch-2-cuda12-channels-last": TorchMode(channels_last=True),
    "pytorch-2-cuda12-graphs": TorchMode(recorded=True),
    "pytorch-2-cuda12-graphs-channels-last": TorchMode(recorded=True, channels_last=True),
    "pytorch-2-compile": TorchMode(compiled="default"),
    "pytorch-2-compile-graphs": TorchMode(compiled="reduce-overhead"),
    "pytorch-2-compile-autotune": TorchMode(compiled="max-autotune"),
}


def runtime() -> Any:
    """The torch module."""
    try:
        import torch
    except (ImportError, OSError):
        raise NoTorch("`--backend torch` needs PyTorch: install the build for this computer (https://pytorch.org)") from None
    return torch


def default_stack(device: Device) -> str:
    """The stack that models the PyTorch that is installed, op by op; wheels for CUDA 12.4 and later bring cuDNN 9."""
    if device == "cpu":
        return "pytorch-cpu"
    cuda = str(runtime().version.cuda or "0")
    return "pytorch-2-cuda12" if tuple(int(part) for part in cuda.split(".")[:2]) >= (12, 4) else "pytorch-2"


def mode_of(stack: str, device: Device) -> TorchMode:
    """How to run what a stack models. Raises UnknownName for a stack that PyTorch on the device is not modelled by."""
    known = [name for name, mode in MODES.items() if mode.device == device]
    if stack not in known:
        raise UnknownName("stack of PyTorch", stack, known, hint=f"on {device} one of {', '.join(known)}")
    return MODES[stack]


def session_class(
    device: Device, stack: str = "", precision: str = "fp32", task: str = "inference"
) -> Callable[[BoundTrace, int], TorchSession]:
    """Sessions on `cpu` or `cuda`; Unsupported where there is no such device, or no such precision on it."""
    torch = runtime()
    if device == "cuda" and not torch.cuda.is_available():
        raise Unsupported("--device cuda: PyTorch sees no GPU here")
    if precision not in DTYPES or (device == "cpu" and precision == "tf32"):
        raise Unsupported(f"--precision {precision}: PyTorch on {device} is measured in "
                          f"{', '.join(name for name in DTYPES if device == 'cuda' or name != 'tf32')}")  # fmt: skip
    stack = stack or default_stack(device)
    mode = mode_of(stack, device)
    return lambda trace, threads: TorchSession(torch, trace, threads, mode, stack=stack, precision=precision, task=task)


def allow_tf32(torch: Any, allowed: bool) -> None:
    """Whether fp32 products and convolutions may run in tf32, which PyTorch lets convolutions do unless it is told not to."""
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = allowed


def by_events(torch: Any, run: Callable[[], object]) -> float:
    """Time of a call on the GPU, between two CUDA events [s]."""
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()
    run()
    last.record()
    last.synchronize()
    return float(first.elapsed_time(last)) * 1e-3


def recorded(torch: Any, run: Callable[[], Any], times: int = 1) -> Callable[[], Any]:
    """The replay of so many runs, one after the other, that are recorded as a CUDA graph."""
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):  # libraries choose and allocate before the record
        for _ in range(WARM_UP):
            run()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(times - 1):
            run()  # its results are let go, so that the next run writes to the same memory
        kept = run()

    def replay() -> Any:
        graph.replay()
        return kept

    return replay


class TorchSession:
    """One network, batch, precision and number of threads, ready to run."""

    def __init__(
        self, torch: Any, trace: BoundTrace, threads: int, mode: TorchMode, *, stack: str, precision: str = "fp32",
        task: str = "inference",
    ) -> None:  # fmt: skip
        missing = sorted({op.kind.op for op in trace.ops} - set(CALLS))
        if missing:
            raise Unsupported(f"network {trace.name} cannot be built with torch: it has {', '.join(missing)}")
        if task not in TASKS:
            raise Unsupported(f"--task {task}: PyTorch is measured in {' and '.join(TASKS)}")
        self._torch, self.trace, self._mode = torch, trace, mode
        self._training = task == "forward_backward"
        on_cpu = mode.device == "cpu"
        self.threads, self.stack, self.host = threads if on_cpu else 1, stack, "cpu" if on_cpu else "gpu"
        self.precision, self.task, self.software = precision, task, f"torch {torch.__version__}"
        torch.set_num_threads(threads)
        if not on_cpu:
            allow_tf32(torch, precision == "tf32")
        torch.manual_seed(0)
        self._calls = (CALLS | ({"attention": attention_by_products} if mode.by_products else {})
                       | ({"batch_norm": batch_norm_of_batch} if self._training else {}))  # fmt: skip
        self._dtype = getattr(torch, DTYPES[precision])
        self._feeds = {name: self._placed(torch.from_numpy(array)) for name, array in feeds(trace).items()}
        self._weights = {op.name: [self._weight(shape, VARIANCES.get(op.kind.op) == i) for i, shape in enumerate(shapes_of(op))]
                         + [self._placed(values) for values in constants_of(torch, op)] for op in trace.ops}  # fmt: skip
        self._learned = [w for op in trace.ops for i, w in enumerate(self._weights[op.name][: len(shapes_of(op))])
                         if self._training and not (op.kind.op in VARIANCES and i < 2)]  # fmt: skip
        for w in self._learned:
            w.requires_grad_(True)
        self._run: Callable[[], Any] = (lambda: self._gradients(self._outputs())) if self._training else self._forward
        if mode.compiled:
            torch._dynamo.reset()  # what was compiled for other networks counts towards a limit, past which ops run one by one
            for tensor in (*self._feeds.values(), *itertools.chain(*self._weights.values())):
                torch._dynamo.mark_static_address(tensor)  # a recorded run reads them where they are
            whole = torch.compile(self._outputs, mode=mode.compiled)
            self._run = (lambda: self._gradients(whole())) if self._training else whole
        if mode.recorded:
            with self._passes():
                self._run = recorded(torch, self._run)

    def _placed(self, values: Any) -> Any:
        """A tensor on the device in the format of the run: floating-point values narrowed, images channels last."""
        torch = self._torch
        there = values.to(self._mode.device)
        if getattr(there, "is_floating_point", lambda: False)() and self._dtype != torch.float32:
            there = there.to(self._dtype)
        if self._mode.channels_last and there.dim() == 4:
            there = there.contiguous(memory_format=torch.channels_last)
        return there

    def _weight(self, shape: tuple[int, ...], positive: bool = False) -> Any:
        values = self._torch.randn(shape, device=self._mode.device) * ((2.0 / prod(shape[1:])) ** 0.5 if len(shape) > 1 else 0.01)
        return self._placed(values.abs() + 1.0 if positive else values)

    def _forward(self, mark: Callable[[BoundOp], None] = lambda op: None) -> dict[str, Any]:
        """All tensors of one run; `mark` is called after each op."""
        held = dict(self._feeds)
        for op in self.trace.ops:
            held[op.name] = self._calls[op.kind.op](self._torch, op, [held[name] for name in op.inputs], self._weights[op.name])
            mark(op)
        return held

    def _outputs(self) -> list[Any]:
        """The outputs of one run alone, so that a compiler may leave out all else."""
        held = self._forward()
        return [held[name] for name in self.trace.outputs]

    def _gradients(self, outputs: list[Any]) -> Any:
        """Gradients of all learned values, of outputs whose own gradients are ones."""
        ones = [self._torch.ones_like(out) for out in outputs]
        return self._torch.autograd.grad(outputs, self._learned, ones, allow_unused=True)

    def _passes(self) -> Any:
        """Whether gradients are recorded."""
        return self._torch.enable_grad() if self._training else self._torch.inference_mode()

    def outputs(self) -> list[tuple[int, ...]]:
        """The shapes of the outputs of one run."""
        with self._torch.inference_mode():
            held = self._forward()
        return [tuple(held[name].shape) for name in self.trace.outputs]

    def timed(self, times: int) -> float:
        """Time of `times` runs [s]; by CUDA events on a GPU."""
        def runs() -> None:
            for _ in range(times):
                self._run()

        with self._passes():
            if self.host == "gpu":
                return by_events(self._torch, runs)
            begin = time.perf_counter()
            runs()
            return time.perf_counter() - begin

    def _event(self) -> Any:
        return self._torch.cuda.Event(enable_timing=True)

    def per_op(self, rounds: int) -> tuple[dict[tuple[str, ...], float], float]:
        """Median time of each op of a forward pass [s]; op by op none are fused."""
        if self._mode.compiled or self._mode.recorded or self._training:
            raise Unsupported("--per-op times a forward pass that is run op by op")
        spent: dict[tuple[str, ...], list[float]] = {(op.name,): [] for op in self.trace.ops}
        for _ in range(rounds):
            with self._torch.inference_mode():
                for name, seconds in (self._stamps() if self.host == "cpu" else self._events()):
                    spent[(name,)].append(seconds)
        return {group: sorted(values)[len(values) // 2] for group, values in spent.items()}, 0.0

    def _stamps(self) -> list[tuple[str, float]]:
        stamps: list[tuple[str, float]] = []
        begin = time.perf_counter()
        self._forward(lambda op: stamps.append((op.name, time.perf_counter())))
        return [(name, at - before) for (name, at), before in zip(stamps, [begin, *(at for _, at in stamps)], strict=False)]

    def _events(self) -> list[tuple[str, float]]:
        marks = [("", self._event())]
        marks[0][1].record()

        def mark(op: BoundOp) -> None:
            marks.append((op.name, self._event()))
            marks[-1][1].record()

        self._forward(mark)
        marks[-1][1].synchronize()
        return [(name, float(before.elapsed_time(after)) * 1e-3)
                for (_, before), (name, after) in itertools.pairwise(marks)]  # fmt: skip
