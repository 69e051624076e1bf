"""What devices at the largest batch that meets conditions say: who is the best there, who does not meet them, what would help."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from archsim.answers import compare
from archsim.answers.contenders import rows_csv, rows_of
from archsim.render.blocks import Block
from archsim.study.standing import titles
from archsim.study.within import Held


def sections(h: Held) -> list[Block]:
    """The blocks of a comparison, with the batch of each device."""
    c, where = h.comparison, " and ".join(h.where)
    called = titles(c.all)
    at = called | {x.name: f"{called[x.name]} at batch {x.estimate.batch}" for x in c.contenders}
    hints = [f"{called[b.hardware]}: {b.ratio:.1f} times as fast with --stack {b.stack} --precision {b.precision} as with {b.of}"
             for b in h.best_stacks]  # fmt: skip
    first = compare.verdict(c, called, f"the largest batch with {where}", at, f"No device reaches {where}.")
    return [first, *compare.body(c, called, h.missed, hints)]


def record(h: Held) -> list[dict[str, Any]]:
    """The rows of a comparison, each with the conditions, what it misses of them (null: nothing) and faster software."""
    c = h.comparison
    missed = {id(x): said for x, said in zip(c.unfit, h.missed, strict=True)}
    faster = {best.hardware: asdict(best) for best in h.best_stacks}
    more = [{"where": list(h.where), "missed": missed.get(id(x)), "best_stack": faster.get(x.device_name)} for x in c.all]
    found = compare.record(c)
    return [row | own for row, own in zip(found, more, strict=False)] + found[len(more) :]


def rows(h: Held) -> list[dict[str, Any]]:
    """Those that meet the conditions."""
    return rows_of(h.contenders, h.comparison.workload)


def csv(h: Held) -> str:
    """One row for each device that meets the conditions."""
    return rows_csv(rows(h))
