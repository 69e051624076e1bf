"""A profile beside its prediction as a self-contained page: two timelines, the causes of the gap, ops and kernels."""

from __future__ import annotations

from archsim.report import figures
from archsim.report.frame import document
from archsim.report.gantt import MOST, gantt
from archsim.report.layers import MOST as MOST_LAYERS
from archsim.report.markup import bound_cell, items, number, percent, table, text, valued, words
from archsim.report.profile import asked, longer_s, ratio, runs_text
from archsim.report.text import longest
from archsim.schedule.observer import Recording, TimelineSlice
from archsim.study.profile_rows import TimelinePiece
from archsim.study.profiled import ProfileComparison


def profile_page(p: ProfileComparison) -> str:
    """The whole page."""
    sections = [
        f"<h1>{text(p.network)} as it ran and as predicted</h1>",
        f'<p class="asked">{text(p.source)}, {text(runs_text(p))}; beside {text(asked(p))}</p>', _cards(p),
        '<h2>Timelines</h2>\n<p class="quiet">Measured above predicted, on one axis. Drag over a part to enlarge it; a double '
        f"click shows all of it again.{_drawn(p)}</p>", figures.embed(gantt(_recording(p)), "timelines"),
        '<h2>What the gap is made of</h2>\n<p class="quiet">The causes add up to measured - predicted; below zero the run was '
        "faster.</p>", _gap(p), f"<h2>Ops</h2>\n{_ops(p)}", _kernels(p), _missed(p), _notes(p),
    ]  # fmt: skip
    return document(f"{p.network}: measured and predicted", sections, figures.library())


def _drawn(p: ProfileComparison) -> str:
    pieces = len(p.measured_timeline) + len(p.predicted_timeline)
    return f" The {MOST:,} longest of {pieces:,} intervals are drawn." if pieces > MOST else ""


def _recording(p: ProfileComparison) -> Recording:
    return Recording(slices=[_slice(piece) for piece in (*p.measured_timeline, *p.predicted_timeline)])


def _slice(piece: TimelinePiece) -> TimelineSlice:
    words = {"kind": piece.track}
    return TimelineSlice(track=piece.track, name=piece.name, start_s=piece.start_s, end_s=piece.end_s, words=words)


def _cards(p: ProfileComparison) -> str:
    boxes = [("measured", number(p.measured_s, "s", 4).body, f"{100 * p.idle_s / p.measured_s:.0f} % of it idle"
              if p.measured_s else ""), ("predicted", number(p.predicted_s, "s", 4).body,
              f"{100 * p.wait_s / p.predicted_s:.0f} % of it waiting for the host"),
             *((one.name, number(one.time_s, "s", 3).body, one.says) for one in p.gap[:4])]  # fmt: skip
    return '<dl class="cards">\n' + "\n".join(
        f'<div><dt>{text(name)}</dt><dd class="big">{value}</dd><dd class="note">{text(note)}</dd></div>'
        for name, value, note in boxes) + "\n</dl>"  # fmt: skip


def _gap(p: ProfileComparison) -> str:
    rows = [(words(one.name), number(one.time_s, "s", 3), percent(one.time_s / p.measured_s if p.measured_s else 0.0),
             valued(str(one.ops), one.ops), words(one.says)) for one in p.gap]  # fmt: skip
    return table(("cause", "time", "of measured", "parts", "what"), rows)


def _ops(p: ProfileComparison) -> str:
    rows = [(words(op.name), words(op.kind), number(op.measured_s, "s"), number(op.predicted_s, "s"),
             valued(ratio(op), op.predicted_s / op.measured_s if op.measured_s else 0.0),
             bound_cell(op.bound), words(op.cause)) for op in longest(p.ops, MOST_LAYERS, longer_s)]  # fmt: skip
    return table(("op", "kind", "measured", "predicted", "predicted / measured", "limit", "charged to"), rows)


def _kernels(p: ProfileComparison) -> str:
    rows = []
    for op in p.ops[:MOST_LAYERS]:
        rows += [(words(op.name), words("measured"), words(k.name), number(k.time_s, "s")) for k in op.kernels]
        if op.kernels:
            rows += [(words(op.name), words("predicted"), words(k.name), number(k.time_s, "s")) for k in op.predicted_kernels]
    return f"<h2>Kernels</h2>\n{table(('op', 'which', 'kernel', 'time'), rows)}" if rows else ""


def _missed(p: ProfileComparison) -> str:
    rows = [(words(one.name), valued(str(one.count), one.count), number(one.time_s, "s"),
             words(one.why), words(one.cause)) for one in p.not_matched[:MOST_LAYERS]]  # fmt: skip
    return f"<h2>Not matched</h2>\n{table(('name', 'count', 'measured', 'why', 'charged to'), rows)}" if rows else ""


def _notes(p: ProfileComparison) -> str:
    lines = items((*p.notes, *p.warnings))
    return f"<h2>Notes</h2>\n{lines}" if lines else ""
