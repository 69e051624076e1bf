"""What a stopwatch of a measurement shows: from the times of host and device to the time that its table has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


def whole_run(run_s: float) -> float:
    """The time of a run as it is scheduled [s]."""
    return run_s


def calls_ahead(run_s: float, wait_s: float, host_s: float) -> float:
    """Time of one of many calls that the host issues without waiting for those before [s]: what host or device need.

    max(run_s - wait_s, host_s)

    run_s: of one call alone [s]; wait_s: of it, the time in which the device waits for the host [s]; host_s: the host's time [s]

    >>> round(calls_ahead(50e-6, 30e-6, 35e-6) * 1e6, 3)
    35.0
    """
    return max(run_s - wait_s, host_s)


def replays(run_s: float, calls: int, gap_s: float, launch_s: float) -> float:
    """Time of one call in graphs of some `calls` that are replayed one after the other [s].

    max(run_s + gap_s / calls, launch_s / calls)

    run_s: of the call's kernels [s]
    gap_s: before the first kernel of a graph, besides that between kernels, `graph.gap_s` [s]
    launch_s: of the whole graph by the host, which launches the next one while one runs [s]

    >>> [round(replays(t, 1, 1e-6, 6.2e-6) * 1e6, 2) for t in (0.5e-6, 9e-6)]
    [6.2, 10.0]
    """
    return max(run_s + gap_s / calls, launch_s / calls)


def event_pair(run_s: float, latency_s: float) -> float:
    """Time between two events of a stream around a kernel [s]: the second waits as a kernel would, `launch.latency` [s].

    >>> round(event_pair(7e-6, 2e-6) * 1e6, 3)
    9.0
    """
    return run_s + latency_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Timer:
    """One way to time a call.

    words: how a call is timed, as in "timed on the device alone"
    time: from what `arguments` names to the time that a table has [s]
    host: whether the host's time for calls and launches is in it
    waits: whether the host waits for the device after each op
    graph: whether the whole run is recorded as one graph, which the host launches
    """

    words: str
    time: Callable[..., float] = whole_run
    arguments: tuple[str, ...] = ("run_s",)
    host: bool = True
    waits: bool = False
    graph: bool = False


REPLAYS = ("run_s", "calls", "gap_s", "launch_s")
TIMERS = {
    "host_sync": Timer(words="with a wait at the end of the run"),
    "each_layer": Timer(words="with a wait after each layer", waits=True),
    "host_async": Timer(words="with no wait between calls", time=calls_ahead, arguments=("run_s", "wait_s", "host_s")),
    "graph": Timer(words="as one graph, launched and waited for", graph=True),
    "device": Timer(words="on the device alone", host=False),
    "graphs": Timer(words="in graphs of some calls, replayed one after the other", time=replays, arguments=REPLAYS, host=False),
    "events": Timer(words="between two events of the stream", time=event_pair, arguments=("run_s", "latency_s"), host=False),
}  # fmt: skip
