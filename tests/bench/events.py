"""Simulated events per second beside a bare loop of simpy timeouts in the same process: `python tests/bench/events.py [ROUNDS]`.

An event is a moment at which something changes: an op is issued, starts or ends, a phase of a kernel begins.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from simpy import Environment

from archsim.query import ask
from archsim.run import host_time, run, spread
from archsim.schedule.serving import Batching, serve
from archsim.schedule.simulated import launches_of
from archsim.schedule.streams import play
from archsim.schedule.waves import CAPACITY
from archsim.simulate.arrivals import poisson

LOOP = 200_000
REQUESTS = 100_000


def best(work: Callable[[], object], rounds: int) -> float:
    """Seconds of the fastest round."""
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)


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


def main() -> None:
    """One line for each case."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    loop = LOOP / best(bare, rounds)
    print(f"bare simpy timeouts: {loop / 1e6:.2f} M/s")
    for streams in (1, 4):
        query = ask("resnet_152", "gtx_1080", batch=16, task="training_step", stack="pytorch-cudnn7.0")
        result, device = run(query), query.spec.device
        host = host_time(result.lowered.kernels, result.cost, query.stack, device, query.calibration)
        issue_s, stall_s = (spread(part, result.lowered.plan_of) for part in (host.issue_s, host.stall_s))
        launches = launches_of(result.lowered, result.cost, device, issue_s, stall_s, streams=streams)
        events = play(launches, CAPACITY).events
        took = best(lambda launches=launches: play(launches, CAPACITY), rounds)
        rate = events / took
        print(f"training step of ResNet-152, {streams} streams: {events} events in {1e3 * took:.0f} ms, {rate / 1e6:.2f} M/s, "
              f"{rate / loop:.2f} of the bare loop")  # fmt: skip
    arrivals, batching = poisson(200.0, REQUESTS, 1), Batching(most=32, wait_s=5e-3)
    events = serve(arrivals, time_of_batch, batching).events
    took = best(lambda: serve(arrivals, time_of_batch, batching), rounds)
    print(f"{REQUESTS} requests: {events} events in {took:.2f} s, {events / took / 1e6:.2f} M/s, {events / took / loop:.2f} of "
          "the bare loop")  # fmt: skip


if __name__ == "__main__":
    main()
