"""Event simulation: events per CPU second, beside a bare loop of simpy timeouts in the same process.

An event is a moment at which something changes: an op is issued, starts or ends, a phase of a kernel begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from .figure import Figure, cpu_seconds, report, warm_rate

STREAMS = (1, 2, 4, 8)
LOOP = 50_000
REQUESTS = 100_000
STEP: dict[str, Any] = {"batch": 16, "task": "training_step", "stack": "pytorch-cudnn7.0"}


def bare(small: bool) -> Callable[[], float]:
    """Timeouts of one process that waits again and again."""
    from simpy import Environment, Timeout

    turns = 50 if small else LOOP

    def work() -> None:
        env = Environment()

        def wait() -> Iterator[Timeout]:
            for _ in range(turns):
                yield env.timeout(1.0)

        env.process(wait())
        env.run()

    return warm_rate(turns, work)


def step(streams: int) -> Callable[[bool], Callable[[], float]]:
    """Events of a training step on some CUDA streams."""

    def prepare(small: bool) -> Callable[[], float]:
        from archsim.estimation.pipeline import run, spread
        from archsim.estimation.request import make_request
        from archsim.schedule.simulated import issued_ops
        from archsim.schedule.streams import run_streams
        from archsim.schedule.waves import capacity

        request = make_request("alexnet" if small else "resnet_152", "gtx_1080", **STEP)
        result = run(request)
        issue_s, stall_s = (spread(part, result.lowered.plan_of) for part in (result.host.issue_s, result.host.stall_s))
        launches = issued_ops(result.lowered, result.cost, request.spec.device, issue_s, stall_s, streams=streams)
        work = partial(run_streams, launches, capacity())
        return warm_rate(work().events, work)

    return prepare


def whole(small: bool) -> Callable[[], float]:
    """A training step from its request on: kernels, their times and phases, and the simulation [s]."""
    from archsim.estimation.pipeline import run
    from archsim.estimation.request import make_request

    net = "alexnet" if small else "resnet_152"
    request = make_request(net, "gtx_1080", fidelity="event", streams=4, **STEP)
    run(request)
    return lambda: cpu_seconds(partial(run, request))


def served(small: bool) -> Callable[[], float]:
    """Events of a server that gathers requests into batches."""
    from archsim.schedule.serving import Batching, serve
    from archsim.simulate.arrivals import poisson

    def time_of_batch(size: int) -> float:
        return 6.4e-3 + 3.2e-3 * size  # about what a Tesla T4 takes for ResNet-50 [s]

    work = partial(serve, poisson(200.0, 100 if small else REQUESTS, 1).tolist(), time_of_batch, Batching(most=32, wait_s=5e-3))
    return warm_rate(work().events, work)


FIGURES = (
    *(Figure(name=f"training step of ResNet-152, {n} streams", unit="1/s", rate=True, prepare=step(n)) for n in STREAMS),
    Figure(name="training step of ResNet-152, 4 streams, with its kernels", unit="s", prepare=whole),
    Figure(name=f"{REQUESTS:,} requests served", unit="1/s", rate=True, prepare=served),
    Figure(name="bare loop of simpy timeouts", unit="1/s", rate=True, prepare=bare),
)


def main(words: Sequence[str] | None = None) -> None:
    """One line for each case."""
    report(__doc__, FIGURES, words)
