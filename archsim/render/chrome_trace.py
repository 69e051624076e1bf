"""A recording in Chrome's trace event format, which Perfetto (ui.perfetto.dev) and chrome://tracing open.

Times in the file are microseconds with three decimals, that is whole nanoseconds, so that rounding keeps nested intervals nested.
The machine is one process, each track one of its threads.
"""

from __future__ import annotations

import json
from typing import Any

from archsim.estimation.power_curve import PowerCurve
from archsim.schedule.observer import Recording, TimelineSlice

PROCESS = 1
POWER = "power [W]"  # counter: all that is drawn, idle power included


def chrome_trace(recording: Recording, title: str, power: PowerCurve | None = None) -> str:
    """The text of the file; `power` becomes a counter track of its own."""
    threads = {track: number for number, track in enumerate(recording.tracks, 1)}
    events: list[dict[str, Any]] = [_meta("process_name", 0, {"name": title})]
    for track, number in threads.items():
        events += [_meta("thread_name", number, {"name": track}), _meta("thread_sort_index", number, {"sort_index": number})]
    pieces = sorted(recording.slices, key=lambda piece: (_ns(piece.start_s), -_ns(piece.end_s)))
    events += [_slice(piece, threads[piece.track]) for piece in pieces if _ns(piece.end_s) > _ns(piece.start_s)]
    for counter, time, value in recording.levels:
        events.append(_counter(counter, time, value))
    if power is not None:
        ends_w = (*power.power_w, 0.0)
        events += [_counter(POWER, time, value) for time, value in zip(power.time_s, ends_w, strict=True)]
    for number, ends in enumerate(recording.flows, 1):
        for letter, (track, time) in zip("sf", ends, strict=True):
            # a flow event must begin inside the interval that it comes from, whose end is already outside
            moment = max(0, _ns(time) - (letter == "s")) / 1000
            point = {"ph": letter, "pid": PROCESS, "tid": threads[track], "ts": moment, "id": number, "name": "waits for",
                     "cat": "dependency"}  # fmt: skip
            events.append(point | ({"bp": "e"} if letter == "f" else {}))
    lines = ",\n".join(json.dumps(event, allow_nan=False) for event in events)
    return f'{{"displayTimeUnit": "ms", "traceEvents": [\n{lines}\n]}}\n'


def _counter(name: str, time_s: float, value: float) -> dict[str, Any]:
    return {"ph": "C", "pid": PROCESS, "name": name, "ts": _ns(time_s) / 1000, "args": {"value": round(value, 6)}}


def _slice(piece: TimelineSlice, thread: int) -> dict[str, Any]:
    start, end = _ns(piece.start_s), _ns(piece.end_s)
    return {"ph": "X", "pid": PROCESS, "tid": thread, "name": piece.name or piece.track, "ts": start / 1000,
            "dur": (end - start) / 1000, "args": dict(piece.words)}  # fmt: skip


def _meta(what: str, thread: int, words: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "M", "pid": PROCESS, "tid": thread, "name": what, "args": words}


def _ns(time_s: float) -> int:
    return round(time_s * 1e9)
