"""Event simulation: events per CPU second, beside a bare loop of simpy timeouts in the same process.

An event is a moment at which something changes: an op is issued, starts or ends, a phase of a kernel begins.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from typing import Any

from .figure import Figure, Sample, cpu_seconds, rate, warm_rate

REQUESTS = 100_000


def step(small: bool, **choices: Any) -> Any:
    """The request of a training step."""
    from archsim.estimation.request import make_request

    net = "alexnet" if small else "resnet_152"
    return make_request(net, "gtx_1080", batch=16, task="training_step", stack="pytorch-cudnn7.0", **choices)


def streams(number: int, small: bool) -> Sample:
    """Events of a training step on some CUDA streams."""
    from archsim.estimation.pipeline import run, spread
    from archsim.schedule.streams import issued_ops, run_streams
    from archsim.schedule.waves import capacity

    request = step(small)
    result = run(request)
    issue_s = spread(result.host, result.lowered.plan_of)
    launches = issued_ops(result.lowered, result.cost, request.spec.device, issue_s, streams=number)
    work = partial(run_streams, launches, capacity())
    return warm_rate(work().events, work)


def whole(small: bool) -> Sample:
    """A training step from its request on: kernels, their times and phases, and the simulation [s]."""
    from archsim.estimation.pipeline import run

    request = step(small, fidelity="event", streams=4)
    run(request)
    return partial(cpu_seconds, partial(run, request))


def served(small: bool) -> Sample:
    """Events of a server that gathers requests into batches."""
    from archsim.schedule.serving import Batching, serve
    from archsim.simulate.requests import poisson

    def time_of_batch(size: int) -> float:
        return 6.4e-3 + 3.2e-3 * size  # about what a Tesla T4 takes for ResNet-50 [s]

    arrivals = poisson(200.0, 100 if small else REQUESTS, 1).tolist()
    work = partial(serve, arrivals, time_of_batch, Batching(most=32, wait_s=5e-3))
    return warm_rate(work().events, work)


def bare(small: bool) -> Sample:
    """Timeouts of one process that waits again and again."""
    from simpy import Environment

    turns = 50 if small else 50_000

    def work() -> None:
        env = Environment()

        def wait() -> Generator[Any]:
            for _ in range(turns):
                yield env.timeout(1.0)

        env.process(wait())
        env.run()

    return warm_rate(turns, work)


FIGURES = (
    *(rate(f"training step of ResNet-152, {number} streams", partial(streams, number)) for number in (1, 2, 4, 8)),
    Figure(name="training step of ResNet-152, 4 streams, with its kernels", unit="s", prepare=whole),
    rate(f"{REQUESTS:,} requests served", served),
    rate("bare loop of simpy timeouts", bare),
)
