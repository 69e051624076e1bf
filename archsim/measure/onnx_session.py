"""Networks in onnxruntime on the CPU."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from archsim.base.errors import MissingExtra, Unsupported
from archsim.measure.onnx_model import build, feeds, is_external, model_of
from archsim.measure.profile import per_group
from archsim.trace.trace import BoundTrace

STACK = "onnxruntime-cpu"
QUIET = 3  # errors only
SUFFIX = "_kernel_time"


def runtime() -> Any:
    """The onnxruntime module; MissingExtra without it or without onnx."""
    try:
        import onnx  # noqa: F401
        import onnxruntime
    except ImportError:
        raise MissingExtra("`archsim measure --backend onnxruntime`", "measure") from None
    return onnxruntime


class OnnxSession:
    """One network, batch and number of threads, ready to run."""

    stack = STACK
    host = "cpu"
    precision, task = "fp32", "inference"

    def __init__(self, trace: BoundTrace, threads: int) -> None:
        self._ort = runtime()
        self.trace, self.threads = trace, threads
        self.software = f"onnxruntime {self._ort.__version__}"
        self._graph, self._model, self._feeds = build(trace), b"", feeds(trace)
        self._model = model_of(self._graph)
        self._session = self._open(self._options())

    def _options(self) -> Any:
        options = self._ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self.threads, 1
        options.log_severity_level = QUIET
        weights = {name: values for name, values in self._graph.weights.items() if is_external(values)}
        values = [self._ort.OrtValue.ortvalue_from_numpy(array) for array in weights.values()]
        options.add_external_initializers(list(weights), values)
        return options

    def _open(self, options: Any) -> Any:
        try:
            return self._ort.InferenceSession(self._model, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's errors have no other common base
            raise Unsupported(f"onnxruntime refuses the network ({str(error).splitlines()[0][:200]})") from None

    def timed(self, times: int) -> float:
        """Wall time of `times` runs [s]."""
        begin = time.perf_counter()
        for _ in range(times):
            self._session.run(None, self._feeds)
        return time.perf_counter() - begin

    def outputs(self) -> list[tuple[int, ...]]:
        """The shapes of the outputs of one run."""
        return [tuple(array.shape) for array in self._session.run(None, self._feeds)]

    def per_op(self, rounds: int) -> tuple[dict[tuple[str, ...], float], float]:
        """Median time of each group of fused ops [s], from the runtime's profiler, and of nodes that belong to no op [s]."""
        with tempfile.TemporaryDirectory() as folder:
            options = self._options()
            options.enable_profiling, options.profile_file_prefix = True, str(Path(folder) / "profile")
            session = self._open(options)
            for _ in range(rounds + 1):
                session.run(None, self._feeds)
            events = json.loads(Path(session.end_profiling()).read_text("utf-8"))
        seconds: dict[str, list[float]] = {}
        for event in events:
            if event.get("cat") == "Node" and event["name"].endswith(SUFFIX):
                seconds.setdefault(event["name"].removesuffix(SUFFIX), []).append(event["dur"] * 1e-6)
        # The first run of every node is the warm-up; a name that stands for several nodes occurs more than once a run.
        node_s = {name: median(values[len(values) // (rounds + 1) :]) * (len(values) // (rounds + 1) or 1)
                  for name, values in seconds.items()}  # fmt: skip
        return per_group(self.trace.ops, node_s)
