"""The timeline file: units, nesting, flows, counters; and that Perfetto's trace processor takes it, where it can run."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

import archsim
from archsim.answers.profile import timeline_chart
from archsim.answers.timeline import outer
from archsim.cost.energy import IDLE
from archsim.render.chrome_trace import chrome_trace
from archsim.schedule.observer import Recording


def nests(events: list[dict[str, Any]]) -> bool:
    """Whether the complete events of each thread lie beside or inside each other."""
    for thread in {event["tid"] for event in events if event["ph"] == "X"}:
        open_until: list[int] = []
        mine = [(round(1e3 * e["ts"]), round(1e3 * e["dur"])) for e in events if e["ph"] == "X" and e["tid"] == thread]
        for start, duration in sorted(mine, key=lambda piece: (piece[0], -piece[1])):
            while open_until and open_until[-1] <= start:
                open_until.pop()
            if open_until and start + duration > open_until[-1]:
                return False
            open_until.append(start + duration)
    return True


@pytest.fixture(scope="module")
def recorded() -> tuple[Recording, archsim.Estimate]:
    seen = Recording()
    choices = {"stack": "pytorch-2", "graph": True, "fidelity": "event", "streams": 4}
    return seen, archsim.estimate("googlenet", "tesla_v100_sxm2", observers=[seen], **choices)


def test_the_file_is_in_microseconds_and_ends_with_the_estimate(recorded: tuple[Recording, archsim.Estimate]) -> None:
    seen, estimate = recorded
    written = json.loads(chrome_trace(seen, "googlenet"))
    complete = [event for event in written["traceEvents"] if event["ph"] == "X"]
    assert max(event["ts"] + event["dur"] for event in complete) == pytest.approx(1e6 * estimate.latency_s, abs=2e-3)
    assert all(event["dur"] > 0 for event in complete)
    ops = {op.name for op in estimate.ops if op.kernels}
    assert ops <= {event["name"] for event in complete}


def test_slices_of_a_track_nest(recorded: tuple[Recording, archsim.Estimate]) -> None:
    events = json.loads(chrome_trace(recorded[0], "googlenet"))["traceEvents"]
    assert nests(events)
    crossing = [{"ph": "X", "tid": 1, "ts": 0.0, "dur": 2.0}, {"ph": "X", "tid": 1, "ts": 1.0, "dur": 2.0}]
    assert not nests(crossing)


def test_flows_join_slices_in_the_order_of_time(recorded: tuple[Recording, archsim.Estimate]) -> None:
    events = json.loads(chrome_trace(recorded[0], "googlenet"))["traceEvents"]
    starts = {event["id"]: event for event in events if event["ph"] == "s"}
    ends = {event["id"]: event for event in events if event["ph"] == "f"}
    assert starts
    assert starts.keys() == ends.keys()
    assert all(starts[i]["ts"] <= ends[i]["ts"] and starts[i]["tid"] != ends[i]["tid"] for i in starts)
    slices = [(e["tid"], e["ts"], e["ts"] + e["dur"]) for e in events if e["ph"] == "X"]
    for point in [*starts.values(), *ends.values()]:  # otherwise a viewer has nothing to bind the arrow to
        assert any(thread == point["tid"] and begin <= point["ts"] < end for thread, begin, end in slices)


def test_counters_have_units_and_stay_in_range(recorded: tuple[Recording, archsim.Estimate]) -> None:
    counters = [event for event in json.loads(chrome_trace(recorded[0], "x"))["traceEvents"] if event["ph"] == "C"]
    names = {event["name"] for event in counters}
    assert names == {"memory [GB/s]", "L2 [%]", "SM pipes [%]", "power beyond idle [W]"}
    assert all(event["args"]["value"] <= 100.0 + 1e-6 for event in counters if "%" in event["name"])
    assert max(event["args"]["value"] for event in counters if "GB/s" in event["name"]) <= 900.0
    times = [event["ts"] for event in counters if event["name"] == "memory [GB/s]"]
    assert times == sorted(times)


def test_energy_is_the_area_under_the_power_counter() -> None:
    """One stream: what all kernels take beyond what is drawn when nothing runs."""
    seen = Recording()
    estimate = archsim.estimate("alexnet", "gtx_1080", fidelity="event", observers=[seen])
    steps = [(time, value) for name, time, value in seen.levels if name.startswith("power")]
    area = sum(value * (after - time) for (time, value), (after, _) in itertools.pairwise(steps))
    parts = estimate.energy_breakdown_j
    assert area == pytest.approx(sum(parts.values()) - sum(parts[name] for name in IDLE), rel=1e-9)


def test_the_chart_has_a_bar_for_each_op_and_none_for_their_kernels(recorded: tuple[Recording, archsim.Estimate]) -> None:
    seen, estimate = recorded
    assert sum(len(s.ends) for s in timeline_chart(seen).series) == len(outer(seen))
    names = {piece.name for piece in outer(seen)}
    assert {op.name for op in estimate.ops if op.kernels} <= names
    assert not [name for name in names if "full waves" in name]


def test_names_of_strangers_cannot_break_the_file_or_the_chart() -> None:
    seen = Recording()
    seen.ran("track </script>", 'a "quoted"\n<b>name</b>', 0.0, 1.0, {"kind": "<i>"})
    assert json.loads(chrome_trace(seen, "<title>"))["traceEvents"][-1]["name"] == 'a "quoted"\n<b>name</b>'


def test_perfetto_takes_the_file(recorded: tuple[Recording, archsim.Estimate], tmp_path: Path) -> None:
    processor = pytest.importorskip("perfetto.trace_processor")
    place = tmp_path / "timeline.json"
    place.write_text(chrome_trace(recorded[0], "googlenet"), "utf-8")
    try:
        opened = processor.TraceProcessor(trace=str(place))
    except Exception as error:  # the package fetches its program when it is first used
        pytest.skip(f"the trace processor does not run here: {error}")
    with opened as trace:
        [row] = trace.request("select count(*) as n from slice")
        [bad] = trace.request("select count(*) as n from stats where severity = 'error' and value > 0")
    assert row.n == sum(event["ph"] == "X" for event in json.loads(place.read_text("utf-8"))["traceEvents"])
    assert bad.n == 0
