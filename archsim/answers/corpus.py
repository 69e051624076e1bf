"""What the frozen summary of the shipped corpus says, with that of served language models beside it, if there is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from archsim.answers.cells import FEW
from archsim.answers.validation import TERMS, figures, origin, share, skips_table
from archsim.render.blocks import Block, Cell, Column, Note, Piece, Table, Verdict, columns, count, percent, words
from archsim.validation.served import CARD, GROUP

TITLE = "Validation of the shipped corpus"
SCORES = ("rows", "MAPE", "95 % interval", "median", "p90", "bias", "covered")
BASELINE = "roofline"
WIDEST = 0.5  # of an error: a bar that is longer ends at the edge

Record = Mapping[str, Any]


def sections(summary: Record, served: Record | None = None) -> list[Block]:
    """The blocks of what `archsim validate --freeze` writes, and of `--served`."""
    s = summary
    power = s["overall"].get("power")
    note = (f"{TERMS[0]} The interval is meant to cover {100 * s['level']:.0f} %. Baselines: median errors of the bare roofline "
            "and of one with three fitted constants.")  # fmt: skip
    return [
        verdict(s), by_class(_flat(s["by_class"])),
        _section("Overall", "quantity", s["overall"]), _section("Times of whole networks", "device kind", s["networks"]),
        Note(text=note, tone="quiet"),
        *_cross_validation(s["cross_validation"]), *_ablation(s["ablation"], s["networks"], "times of whole networks"),
        *_ablation(s["power_ablation"], {"all": power} if power else {}, "powers"),
        _section("By class", "class", _flat(s["by_class"])), _section("By device kind", "device kind", _flat(s["by_kind"])),
        _section("By source", "source", _flat(s["by_source"])), *(_served(served) if served else []),
        _devices(s["devices"]), skips_table(s["skipped"]), origin(dict(sorted(s["provenance"].items()))),
    ]  # fmt: skip


def verdict(s: Record) -> Verdict:
    """How far off, quantity by quantity."""
    rows = sum(own["n"] for own in s["overall"].values())
    said = [f"{name.capitalize()}: half of {own['n']:,} predictions are within {100 * own['median']:.1f} %, nine in ten within "
            f"{100 * own['p90']:.1f} %{_covered(own, s['level'])}."
            for name, own in sorted(s["overall"].items(), key=lambda item: -item[1]["n"])[:3]]  # fmt: skip
    asked = [f"{rows:,} measured values", f"{len(s['devices'])} devices", "analytical model"]
    return Verdict(title=TITLE, asked=asked, sentences=said)


def _covered(own: Record, level: float) -> str:
    if own["coverage"] is None:
        return ""
    return f"; {100 * own['coverage']:.0f} % are inside their interval, {100 * level:.0f} % meant"


def by_class(groups: Record) -> Table:
    """A bar to the median error of each class, a mark at its 90th percentile, a ring at the median error of the roofline."""
    heads = [Column(head="class"), Column(head="rows", kind="number", needed=False), Column(head="median", kind="number"),
             Column(head="nine in ten within", kind="number", needed=False), Column(head="", kind="bar"),
             Column(head=BASELINE, kind="number", needed=False)]  # fmt: skip
    rows = [[words(name), count(own["n"], 9), percent(own["median"]), percent(own["p90"]), _reach(own), share(_baseline(own))]
            for name, own in groups.items()]  # fmt: skip
    note = ("Bars reach to the median error, marks stand at the 90th percentile, rings at the median error of the bare roofline; "
            f"what is more than {100 * WIDEST:.0f} % stands at the edge.")  # fmt: skip
    return Table(title="Error by class", columns=heads, rows=rows, notes=[note])


def _reach(own: Record) -> Cell:
    bare = _baseline(own)
    at = [min(value, WIDEST) / WIDEST for value in (own["median"], own["p90"], bare or 0.0)]
    pieces = [Piece(start=0.0, end=at[0], tone="0"), Piece(start=at[1], end=at[1], sign="|")]
    return Cell(bar=[*pieces, *([Piece(start=at[2], end=at[2], sign="o")] if bare is not None else [])], value=own["median"])


def _baseline(own: Record, name: str = BASELINE) -> float | None:
    return float(own["baselines"][name]["median"]) if name in own["baselines"] else None


def _flat(groups: Mapping[str, Record]) -> dict[str, Any]:
    """One entry for each name and quantity, the largest first."""
    found = {f"{name}, {kind}": own for name, kinds in groups.items() for kind, own in kinds.items()}
    return dict(sorted(found.items(), key=lambda item: (-item[1]["n"], item[0])))


def _section(title: str, what: str, groups: Record, notes: Sequence[str] = (), level: int = 1) -> Table:
    names = sorted({name for own in groups.values() for name in own["baselines"]}, reverse=True)
    rows = [[words(name), *figures(own["n"], own["mape"], own["ci"], own["median"], own["p90"], own["bias"]),
             share(own["coverage"], ".0f"), *(share(_baseline(own, base)) for base in names)]
            for name, own in groups.items()]  # fmt: skip
    heads = (what, *SCORES, *names)
    return Table(title=title, columns=columns(*heads, numbers=range(1, len(heads))), rows=rows, notes=notes, level=level,
                 long=len(rows) > FEW)  # fmt: skip


def _cross_validation(folds: Mapping[str, Record]) -> list[Block]:
    if not folds:
        return [Note(text="Cross-validation: not run for this calibration; --folds hardware,network,stack,source does.", level=1)]
    groups = {f"{fold}, {kind}": own for fold, kinds in sorted(folds.items()) for kind, own in sorted(kinds.items())}
    note = "Times of whole networks, each predicted with constants that were fitted without its device, network, stack or source."
    return [_section("Cross-validation", "left out", groups, [note])]


def _ablation(parts: Mapping[str, Record], whole: Record, what: str) -> list[Block]:
    """What each part is worth; `whole` has the scores of the whole model under "all"."""
    if not parts:
        return []
    ordered = [("nothing: the whole model", whole["all"])] if "all" in whole else []
    ordered += sorted(parts.items(), key=lambda item: (-item[1]["median"], item[0]))
    rows = [[words(part), count(own["n"], 9), percent(own["median"]), percent(own["mape"])] for part, own in ordered]
    return [Table(title=f"What each part of the model is worth to {what}", rows=rows, level=1,
                  columns=columns("without", "rows", "median", "MAPE", numbers=(1, 2, 3)))]  # fmt: skip


def _served(served: Record) -> list[Block]:
    """Language models that engines served, by quantity, by engine and card, and each by itself."""
    values = sum(own["n"] for own in served["overall"])
    note = (f"{values:,} values of published runs, to which no constant is fitted; the clocks of each engine's host between two "
            f"steps follow from them, but for SGLang's. {sum(served['skipped'].values()):,} more cannot be predicted. Constants: "
            f"{served['provenance']['calibration']}.")  # fmt: skip
    return [_scored("Served language models", served["overall"], ("quantity",), [note]),
            _scored("Served, by engine and card", served["cards"], CARD),
            _scored("Served, each model", served["groups"], GROUP)]  # fmt: skip


def _scored(title: str, records: Sequence[Record], by: Sequence[str], notes: Sequence[str] = ()) -> Table:
    rows = [[*(words(own[name]) for name in by), count(own["n"], 9), percent(own["median"]), percent(own["p90"]),
             percent(own["bias"], "+.1f"), share(own["coverage"], ".0f")] for own in records]  # fmt: skip
    heads = (*by, "rows", "median", "p90", "bias", "covered")
    return Table(title=title, columns=columns(*heads, numbers=range(len(by), len(heads))), rows=rows, notes=notes, level=1,
                 long=len(rows) > FEW)  # fmt: skip


def _devices(devices: Record) -> Table:
    most = sorted(devices.items(), key=lambda item: (-item[1]["rows"], item[0]))
    rows = [[words(name), count(s["rows"], 9), count(s.get("n", 0), 9), share(s.get("median")), share(s.get("bias"), "+.1f"),
             share(s.get("coverage"), ".0f")] for name, s in most]  # fmt: skip
    heads = ("device", "rows", "of whole networks", "median error", "bias", "covered")
    return Table(title="Devices", columns=columns(*heads, numbers=range(1, 6)), rows=rows, level=1, long=len(rows) > FEW)
