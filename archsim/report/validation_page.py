"""A validation as a self-contained HTML page, and the frozen summary of the shipped corpus as a page of tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from archsim.report import figures
from archsim.report.cells import cells_html
from archsim.report.drawing import drawing
from archsim.report.frame import document
from archsim.report.markup import TableCell, percent, table, text, valued, words
from archsim.report.summary_svg import summary_rows, summary_svg
from archsim.report.text import per_cent
from archsim.report.validation_figures import BAND, MOST_POINTS, at_limit, distribution, scatter, sources
from archsim.validation.evaluation import GroupScore, Validation
from archsim.validation.served import CARD, GROUP

QUANTITIES = ("time", "power", "energy")
TERMS = (
    "An error is predicted / measured - 1 of a time, power or energy; a rate counts as the time that it stands for. MAPE, "
    "median and p90 are of its absolute value, the bias is its signed median; covered is the share of measured values "
    "inside the stated interval."
)
SCORES = ("rows", "MAPE", "95 % interval", "median", "p90", "bias", "covered")


def validation_page(v: Validation, provenance: Mapping[str, str]) -> str:
    """The whole page of a validation."""
    sections = [_heading(v), _cards(v), *(_charts(v, kind) for kind in QUANTITIES), cells_html(v) if v.settings.cells else "",
                _groups(v), _skipped(v), _origin(provenance)]  # fmt: skip
    return document("Measured beside predicted", sections, figures.library())


def _heading(v: Validation) -> str:
    r = v.settings
    line = [f"{len(v.cases)} measured values", f"{r.fidelity} model"]
    line += [f"without {', '.join(sorted(r.without))}"] if r.without else []
    line += [f"each predicted without its {r.fold}"] if r.fold else []
    line.append(f"{len(v.skips)} rows skipped")
    return f'<h1>Measured beside predicted</h1>\n<p class="asked">{text(" · ".join(line))}</p>'


def _cards(v: Validation) -> str:
    if not v.cases:
        return "<p>Nothing could be predicted.</p>"
    parts = []
    for group in v.overall:
        s, level = group.score, v.settings.calibration.level
        covered = ("-", "no interval is stated")
        if s.coverage is not None:
            covered = (f"{100 * s.coverage:.0f} %", f"by the interval, {100 * level:.0f} % meant")
        against = "; ".join(f"{text(name)} {per_cent(own.median_ape)}" for name, own in group.baselines.items())
        low, high = s.mape_interval
        cards = [
            ("median error", per_cent(s.median_ape), against or f"of {s.n} rows"),
            ("MAPE", per_cent(s.mape), f"95 % interval: {per_cent(low)} to {per_cent(high)}"),
            ("p90", per_cent(s.p90_ape), "nine in ten rows are nearer"),
            ("bias", f"{100 * s.bias:+.1f} %", "median of the signed error"),
            ("covered", *covered),
            ("order of devices", "-" if group.order is None else f"{group.order.mean:.2f}",
             "no two devices to compare" if group.order is None else
             f"Kendall's tau, mean of {group.order.groups} networks, least {group.order.least:.2f}"),
        ]  # fmt: skip
        boxes = "\n".join(
            f'<div><dt>{name}</dt><dd class="big">{value}</dd><dd class="note">{note}</dd></div>' for name, value, note in cards
        )
        parts.append(f'<h2>{text(group.by["quantity"]).capitalize()}: {s.n} rows</h2>\n<dl class="cards">\n{boxes}\n</dl>')
    return "\n".join(parts) + f'\n<p class="quiet">{TERMS}</p>'


def _charts(v: Validation, kind: str) -> str:
    drawn = sources(v, kind)
    if not drawn:
        return ""
    names = list(dict.fromkeys([*sources(v, "time"), *sources(v, "power"), *sources(v, "energy")]))
    whole = sum(map(len, drawn.values()))
    note = f"Solid: predicted as measured; dashed: {100 * BAND:.0f} % more and less. A click on a source hides it."
    if kind == "time":
        note += " A rate is drawn as the time of one batch."
    if kind == "power" and at_limit(v):
        note += " Marks on a dotted line are runs predicted at the power limit, at which a device lowers its clock."
    if whole > MOST_POINTS:
        note += f" At most {MOST_POINTS} of {whole} rows are drawn: the largest sources are thinned evenly."
    spread = "The box holds the middle half of the rows of a source, the whiskers end at the 10th and 90th percentile."
    return (
        f'<h2>Predicted against measured {kind}</h2>\n<p class="quiet">{note}</p>\n'
        f"{figures.embed(scatter(v, kind, names), f'{kind}-scatter')}\n"
        f'<h2>Error of {kind} by source</h2>\n<p class="quiet">{spread}</p>\n'
        f"{figures.embed(distribution(v, kind, names), f'{kind}-spread')}"
    )


def _groups(v: Validation) -> str:
    if not v.cases:
        return ""
    names = list(v.baselines)
    head = [*v.settings.by, *SCORES, *(f"{name}, median" for name in names)]
    rows = [_group(group, names) for group in v.groups]
    note = "A click on a head sorts. Baselines stand at the right: the median error of each on the same rows."
    return f'<h2>Groups</h2>\n<p class="quiet">{note}</p>\n<div class="scroll">\n{table(head, rows)}\n</div>'


def _group(group: GroupScore, names: Sequence[str]) -> list[TableCell]:
    s = group.score
    cells = [words(name) for name in group.by.values()]
    cells += _scores(s.n, s.mape, s.mape_interval, s.median_ape, s.p90_ape, s.bias, s.coverage)
    return cells + baselines(group, names)


def _scores(
    n: int, mape: float, ci: Sequence[float], median: float, p90: float, bias: float, coverage: float | None
) -> list[TableCell]:
    interval = valued(f"{per_cent(ci[0])} to {per_cent(ci[1])}", ci[1] - ci[0])
    return [
        count(n), percent(mape), interval, percent(median), percent(p90), percent(bias, "+.1f"), share(coverage, ".0f"),
    ]  # fmt: skip


def count(n: int) -> TableCell:
    """How many, right-aligned."""
    return valued(str(n), n)


def share(value: float | None, form: str = ".1f") -> TableCell:
    """A share, or a dash where there is none."""
    return valued("-", -1.0) if value is None else percent(value, form)


def baselines(group: GroupScore, names: Sequence[str]) -> list[TableCell]:
    """The median error of each baseline of a group."""
    return [share(group.baselines[name].median_ape if name in group.baselines else None) for name in names]


def origin(values: Iterable[tuple[str, str]]) -> list[tuple[TableCell, TableCell]]:
    """Versions and hashes with what they are of."""
    return [(words(name), TableCell(body=f"<code>{text(value)}</code>")) for name, value in values]


def _skipped(v: Validation) -> str:
    return _skips(dict(Counter(skip.reason for skip in v.skips)))


def _skips(counted: Mapping[str, int]) -> str:
    if not counted:
        return "<h2>Skipped</h2>\n<p>No row was skipped.</p>"
    ordered = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    rows = [(count(times), words(reason)) for reason, times in ordered]
    body = table(("rows", "reason"), rows)
    return f'<h2>Skipped: {sum(counted.values())} rows</h2>\n<div class="scroll">\n{body}\n</div>'


def _origin(provenance: Mapping[str, str]) -> str:
    return f"<h2>Provenance</h2>\n{table(('what', 'version or hash'), origin(provenance.items()), style='pairs')}"


# ----------------------------------------------------------------------------------------------------------- the summary


def summary_page(summary: Mapping[str, Any], served: Mapping[str, Any] | None = None) -> str:
    """The summary that `archsim validate --freeze` writes, as a page of tables, with that of `--served` if it is there."""
    s = summary
    count = sum(own["n"] for own in s["overall"].values())
    asked = f"{count} measured values of the shipped corpus · {len(s['devices'])} devices · analytical model"
    sections = [
        f'<h1>Measured beside predicted</h1>\n<p class="asked">{text(asked)}</p>\n<p class="quiet">{TERMS} '
        f"The interval is meant to cover {100 * s['level']:.0f} %. roofline and constants are the median errors of the bare "
        "roofline and of one with three fitted constants.</p>",
        _section("Overall", "quantity", s["overall"]), _picture(_flat(s["by_class"])),
        _section("Times of whole networks", "device kind", s["networks"]),
        _cross_validation(s["cross_validation"]), _parts(s),
        _section("By class", "class", _flat(s["by_class"])), _section("By device kind", "device kind", _flat(s["by_kind"])),
        _section("By source", "source", _flat(s["by_source"])), _served(served) if served else "",
        _devices(s["devices"]), _skips(s["skipped"]),
        _origin(dict(sorted(s["provenance"].items()))),
    ]  # fmt: skip
    return document("Validation of the shipped corpus", sections)


def _picture(groups: Mapping[str, Any]) -> str:
    if not groups:
        return ""
    head = ("class", "rows", "median", "p90", "roofline_median")
    return f"<h2>Error by class</h2>\n{drawing(summary_svg(groups), 'error by class', head, summary_rows(groups))}"


def _flat(groups: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """One entry for each name and quantity, the largest first."""
    found = {f"{name}, {kind}": own for name, kinds in groups.items() for kind, own in kinds.items()}
    return dict(sorted(found.items(), key=lambda item: (-item[1]["n"], item[0])))


def _section(title: str, what: str, groups: Mapping[str, Any], note: str = "") -> str:
    if not groups:
        return ""
    names = sorted({name for own in groups.values() for name in own["baselines"]}, reverse=True)
    rows = [[words(name), *_recorded(own), *_baselines(own, names)] for name, own in groups.items()]
    lead = f'<p class="quiet">{text(note)}</p>\n' if note else ""
    return f'<h2>{text(title)}</h2>\n{lead}<div class="scroll">\n{table([what, *SCORES, *names], rows)}\n</div>'


def _recorded(own: Mapping[str, Any]) -> list[TableCell]:
    return _scores(own["n"], own["mape"], own["ci"], own["median"], own["p90"], own["bias"], own["coverage"])


def _baselines(own: Mapping[str, Any], names: Sequence[str]) -> list[TableCell]:
    return [share(own["baselines"][name]["median"] if name in own["baselines"] else None) for name in names]


def _served(served: Mapping[str, Any]) -> str:
    """Language models that engines served, by quantity, by engine and card, and each by itself."""
    values = sum(own["n"] for own in served["overall"])
    note = (f"{values} values of published runs, to which no constant is fitted; the clocks of each engine's host between two "
            f"steps follow from them, but for SGLang's. {sum(served['skipped'].values())} more cannot be predicted. Constants: "
            f"{served['provenance']['calibration']}.")  # fmt: skip
    tables = [_scored(served["overall"], ("quantity",)), _scored(served["cards"], CARD), _scored(served["groups"], GROUP)]
    return f'<h2>Served language models</h2>\n<p class="quiet">{text(note)}</p>\n' + "\n".join(tables)


def _scored(records: Sequence[Mapping[str, Any]], by: Sequence[str]) -> str:
    rows = [[*(words(own[name]) for name in by), count(own["n"]), percent(own["median"]), percent(own["p90"]),
             percent(own["bias"], "+.1f"), share(own["coverage"], ".0f")] for own in records]  # fmt: skip
    return f'<div class="scroll">\n{table((*by, "rows", "median", "p90", "bias", "covered"), rows)}\n</div>'


def _cross_validation(folds: Mapping[str, Mapping[str, Any]]) -> str:
    if not folds:
        return "<h2>Cross-validation</h2>\n<p>Not run for this calibration; --folds hardware,network,stack,source does.</p>"
    groups = {f"{fold}, {kind}": own for fold, kinds in sorted(folds.items()) for kind, own in sorted(kinds.items())}
    note = "Times of whole networks, each predicted with constants that were fitted without its device, network, stack or source."
    return _section("Cross-validation", "left out", groups, note)


def _ablation(parts: Mapping[str, Mapping[str, Any]], whole: Mapping[str, Any], what: str) -> str:
    """What each part is worth; `whole` has the scores of the whole model under "all"."""
    if not parts:
        return ""
    ordered = [("nothing: the whole model", whole["all"])] if "all" in whole else []
    ordered += sorted(parts.items(), key=lambda item: (-item[1]["median"], item[0]))
    rows = [[words(part), count(own["n"]), percent(own["median"]), percent(own["mape"])] for part, own in ordered]
    note = f"{what} with one part of the model left out, the one that is missed most first."
    body = table(("without", "rows", "median", "MAPE"), rows)
    return f'<h3>{what}</h3>\n<p class="quiet">{note}</p>\n<div class="scroll">\n{body}\n</div>'


def _parts(summary: Mapping[str, Any]) -> str:
    """What each part is worth, to times and to powers."""
    power = summary["overall"].get("power")
    found = _ablation(summary["ablation"], summary["networks"], "Times of whole networks")
    found += _ablation(summary["power_ablation"], {"all": power} if power else {}, "Powers")
    return f"<h2>What each part of the model is worth</h2>\n{found}" if found else ""


def _devices(devices: Mapping[str, Any]) -> str:
    most = sorted(devices.items(), key=lambda item: (-item[1]["rows"], item[0]))
    rows = [(words(name), count(s["rows"]), count(s.get("n", 0)), share(s.get("median"), ".1f"),
             share(s.get("bias"), "+.1f"), share(s.get("coverage"), ".0f")) for name, s in most]
    head = ("device", "rows", "of whole networks", "median error", "bias", "covered")
    return f'<h2>Devices</h2>\n<div class="scroll">\n{table(head, rows)}\n</div>'
