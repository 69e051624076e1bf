"""What the page draws of a state: totals, limits, rooflines, layers, other variants, and how to run it elsewhere."""

from __future__ import annotations

from base64 import b64encode

from archsim.base.errors import ArchsimError
from archsim.base.units import show
from archsim.estimation.result import Estimate
from archsim.report.bars import bars
from archsim.report.layers import by_kind, by_op, is_large
from archsim.report.markup import table, text, words
from archsim.report.references import references
from archsim.report.roofline import roof
from archsim.report.roofline_svg import inline
from archsim.report.text import limit_line, rate_unit
from archsim.report.whatif import moves_text, ratio_text
from archsim.report.whatif_page import layer_table
from archsim.study.whatif import Change
from archsim.ui.export import estimate_command, study_text, sweep_command, whatif_command
from archsim.ui.state import MOST_PINS, PageState, change_of, estimated, read_state

CARDS = (("latency_s", "latency"), ("throughput_per_s", "throughput"), ("power_w", "power"), ("energy_j", "energy"))


def result(state: PageState) -> str:
    """The part of the page that a change draws anew. Raises ArchsimError."""
    c = change_of(state)
    sections = [
        _heading(state, c), "".join(f'<p class="warn">{text(line)}</p>' for line in c.after.warnings), _cards(c), _limits(c),
        _pins(state), _rooflines(c), _bars(c), f'<h2>Layers</h2>\n<div class="scroll">\n{layer_table(c)}\n</div>',
        _measured(c.before), _export(state, c),
    ]  # fmt: skip
    return "\n".join(sections)


def problem(message: str) -> str:
    """What the page says instead of a result."""
    return f'<p class="warn" role="alert"><b>Not possible:</b> {text(message)}</p>'


def _heading(state: PageState, c: Change) -> str:
    b = c.before
    asked = f"{b.task.replace('_', ' ')} · batch {b.batch} · {b.precision} · stack {b.stack} · {b.fidelity} model"
    changed = ", ".join(state.words) or "nothing is changed: move a slider or write a value with its unit"
    return (f"<h2>{text(b.network)} on {text(b.hardware_name)}</h2>\n"
            f'<p class="asked">{text(asked)}</p>\n<p><b>What if:</b> {text(changed)}</p>')  # fmt: skip


def interval(e: Estimate, name: str) -> tuple[float, float]:
    """The interval of a total, at the level of the estimate."""
    low, high = e.latency_interval_s
    if name == "throughput_per_s":
        return e.throughput_per_s * e.latency_s / high, e.throughput_per_s * e.latency_s / low
    return {"latency_s": (low, high), "power_w": e.power_interval_w, "energy_j": e.energy_interval_j}[name]


def _amount(e: Estimate, name: str) -> str:
    """A total with its interval."""
    unit = {"latency_s": "s", "power_w": "W", "energy_j": "J"}.get(name)
    value, (low, high) = getattr(e, name), interval(e, name)
    if unit:
        return f"{show(value, unit)} ({show(low, unit, 3)} to {show(high, unit, 3)})"
    return f"{value:.4g} {rate_unit(e)} ({low:.3g} to {high:.3g})"


def _cards(c: Change) -> str:
    boxes = []
    for name, title in CARDS:
        before, after = _amount(c.before, name), _amount(c.after, name)
        value, _, span = after.partition(" (")
        boxes.append(f'<div><dt>{title}</dt><dd class="big">{text(value)}</dd>'
                     f'<dd class="note">{text(span.rstrip(")"))}</dd>'
                     f'<dd class="note">before: {text(before)}; {text(ratio_text(c.ratios.get(name)))}</dd></div>')  # fmt: skip
    memory = "" if c.after.fits else '<p class="warn">It does not fit in the memory of the device.</p>'
    level = f'<p class="quiet">{100 * c.after.interval_level:.0f} % of measured values are expected within the intervals.</p>'
    return f'<dl class="cards four">\n{"".join(boxes)}\n</dl>\n{memory}{level}'


def _limits(c: Change) -> str:
    moves = "".join(f"<li>{text(line)}</li>" for line in moves_text(c).splitlines())
    return (f"<h2>What limits it</h2>\n<p>Before: {text(limit_line(c.before))}.<br>After: {text(limit_line(c.after))}.</p>\n"
            f"<ul>{moves}</ul>")  # fmt: skip


def _pins(state: PageState) -> str:
    """This state beside the pinned ones."""
    rows = []
    for query in (*state.pins, ""):
        shown = read_state(query) if query else state
        name = f"{shown.net} on {shown.hw}" + "".join(f", {one}" for one in (*shown.choices.values(), *shown.words))
        try:
            e = estimated(shown)
            values = [*(words(_amount(e, key)) for key, _ in CARDS), words(e.limited_by)]
        except ArchsimError as error:
            values = [words(str(error)), *(words("") for _ in CARDS)]
        rows.append([words(name if query else f"{name} (this one)"), *values])
    body = table(("variant", *(title for _, title in CARDS), "limited by"), rows)
    return f"<h2>Variants</h2>\n{body}\n<p>{_pin_links(state)}</p>"


def _pin_links(state: PageState) -> str:
    own = state.alone.query
    links = []
    if own not in state.pins and len(state.pins) < MOST_PINS:
        links.append(f'<a href="/?{text(_with_pins(state, (*state.pins, own)))}">Pin this variant</a>')
    for i, pin in enumerate(state.pins, 1):
        others = tuple([one for one in state.pins if one != pin])
        links.append(f'<a href="/?{text(_with_pins(read_state(pin), state.pins))}">Open variant {i}</a>')
        links.append(f'<a href="/?{text(_with_pins(state, others))}">Remove variant {i}</a>')
    return " · ".join(links)


def _with_pins(state: PageState, pins: tuple[str, ...]) -> str:
    return PageState(net=state.net, hw=state.hw, choices=state.choices, settings=state.settings, pins=pins).query


def _rooflines(c: Change) -> str:
    parts = "".join(f"<div><h3>{when}</h3>{_roofline(e, when)}</div>" for when, e in (("Before", c.before), ("After", c.after)))
    return f'<h2>Roofline</h2>\n<div class="pair drawing">{parts}</div>'


def _roofline(e: Estimate, when: str) -> str:
    try:
        return inline(roof(e, e.spec), f"{e.network} on {e.hardware_name}, {when.lower()}")
    except ArchsimError as error:
        return f'<p class="quiet">{text(str(error))}</p>'


def _bars(c: Change) -> str:
    rows = by_kind if is_large(c.before) else by_op
    what = "kind of layer" if is_large(c.before) else "layer"
    pair = "".join(f"<div><h3>{when}</h3>{bars(rows(e), e.latency_s, e.energy_j)}</div>"
                   for when, e in (("Before", c.before), ("After", c.after)))  # fmt: skip
    head = f'<h2>Time and energy by {what}</h2>\n<p class="quiet">Coloured by what limits each.</p>'
    return f'{head}\n<div class="pair">{pair}</div>'


def _measured(e: Estimate) -> str:
    if not e.references:
        return "<h2>Measured by others</h2>\n<p>The corpus has no published measurement of the case before the change.</p>"
    return f"<h2>Measured by others, before the change</h2>\n{references(e)}"


def _export(state: PageState, c: Change) -> str:
    commands = [whatif_command(state), *([estimate_command(state), sweep_command(state)] if state.settings else [])]
    parts = [f"<h2>Run it elsewhere</h2>\n<pre>{_lines(commands)}</pre>"]
    if state.settings:
        study = study_text(state, c)
        packed = b64encode(study.encode()).decode("ascii")
        parts.append(f'<details><summary>As a study file</summary><pre>{_lines(study.splitlines())}</pre></details>\n'
                     f'<p class="data"><a download="study.toml" href="data:text/plain;base64,{packed}">study.toml</a>: '
                     "archsim study study.toml --out FOLDER</p>")  # fmt: skip
    return "\n".join(parts)


def _lines(listed: list[str]) -> str:
    """Lines of code: each is escaped on its own, because control characters do not survive."""
    return "\n".join(map(text, listed))
