"""Simulated events per second beside a bare loop of simpy timeouts in the same process: `python tests/bench/events.py [ROUNDS]`.

An event is a moment at which something changes: an op is issued, starts or ends, a phase of a kernel begins. Rounds of the
simulation and of the loop alternate, in CPU seconds, and the ratio is the median of theirs, as both see the same computer.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from statistics import median

from simpy import Environment

from archsim.estimation.pipeline import host_time, run, spread
from archsim.estimation.request import make_request
from archsim.schedule.serving import Batching, serve
from archsim.schedule.simulated import issued_ops
from archsim.schedule.streams import run_streams
from archsim.schedule.waves import capacity
from archsim.simulate.arrivals import poisson

LOOP = 50_000
REQUESTS = 100_000


def seconds(work: Callable[[], object]) -> float:
    """CPU seconds of a call."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def compared(work: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Seconds of the fastest round of some work, and the median of how many turns a bare loop makes meanwhile."""
    times = [(seconds(work), seconds(bare)) for _ in range(rounds)]
    return min(time for time, _ in times), median(time / loop for time, loop in times) * LOOP


def bare() -> None:
    """One process that waits again and again."""
    env = Environment()

    def wait():
        for _ in range(LOOP):
            yield env.timeout(1.0)

    env.process(wait())
    env.run()


def time_of_batch(size: int) -> float:
    """About what a Tesla T4 takes for ResNet-50."""
    return 6.4e-3 + 3.2e-3 * size


def line(what: str, events: int, work: Callable[[], object], rounds: int) -> str:
    """What a case says of itself."""
    took, turns = compared(work, rounds)
    return f"{what}: {events} events in {1e3 * took:.0f} ms, {events / took / 1e6:.2f} M/s, {events / turns:.2f} of the bare loop"


def main() -> None:
    """One line for each case."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    request = make_request("resnet_152", "gtx_1080", batch=16, task="training_step", stack="pytorch-cudnn7.0")
    result, device = run(request), request.spec.device
    host = host_time(result.lowered.kernels, result.cost, request.stack, device, request.calibration)
    issue_s, stall_s = (spread(part, result.lowered.plan_of) for part in (host.issue_s, host.stall_s))
    for streams in (1, 2, 4, 8):
        launches = issued_ops(result.lowered, result.cost, device, issue_s, stall_s, streams=streams)
        work = partial(run_streams, launches, capacity())
        print(line(f"training step of ResNet-152, {streams} streams", work().events, work, rounds))
        asked = make_request("resnet_152", "gtx_1080", batch=16, task="training_step", stack="pytorch-cudnn7.0", fidelity="event",
                    streams=streams)  # fmt: skip
        whole = min(seconds(partial(run, asked)) for _ in range(3))
        print(f"  with the kernels, their times and their phases: {1e3 * whole:.0f} ms")
    arrivals, batching = poisson(200.0, REQUESTS, 1), Batching(most=32, wait_s=5e-3)
    work = partial(serve, arrivals, time_of_batch, batching)
    print(line(f"{REQUESTS} requests", work().events, work, rounds))


if __name__ == "__main__":
    main()
