"""What comparisons on several networks say: all of them side by side, then each on its own."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import geometric_mean
from typing import Any

from archsim.answers import module_of, sections_of
from archsim.answers.compare import cross_table, score_cell
from archsim.answers.contenders import rows_csv
from archsim.render.blocks import Block, Table, words
from archsim.study.comparison import Comparison
from archsim.study.standing import titles


def sections(found: Sequence[Any]) -> list[Block]:
    """The blocks of each comparison, and of those at one batch a table of all networks."""
    each = [block for one in found for block in sections_of(one)]
    return [*each, by_network(found)] if all(isinstance(one, Comparison) for one in found) else each


def by_network(found: Sequence[Comparison]) -> Table:
    """Throughput of every device on every network, the best of each network marked.

    The mean is geometric, of the throughput as a share of the best, for devices that run all networks.
    """
    called = titles([x for c in found for x in c.all])
    best = [max((x.throughput_per_s for x in c.contenders), default=0.0) for c in found]
    rows = []
    for name in dict.fromkeys(x.name for c in found for x in c.all):
        here = [next((x for x in c.all if x.name == name), None) for c in found]
        rates = [x.throughput_per_s if x is not None and x.fits else None for x in here]
        shares = [rate / top for rate, top in zip(rates, best, strict=True) if rate is not None]
        mean = geometric_mean(shares) if len(shares) == len(found) else 0.0
        cells = [score_cell(x, rate, rate == top) for x, rate, top in zip(here, rates, best, strict=True)]
        rows.append((mean, [words(called[name]), *cells, words(f"{mean:.3g}" if mean else "-")]))
    rows.sort(key=lambda pair: -pair[0])
    title = "Throughput on every network (*: best of the network; mean: geometric, of the share of the best)."
    return cross_table([*(c.network for c in found), "mean"], [row for _, row in rows], title)


def record(found: Sequence[Any]) -> list[dict[str, Any]]:
    """The rows of all comparisons at one batch; of those over batches an object for each."""
    records = [module_of(one).record(one) for one in found]
    return [row for one in records for row in (one if isinstance(one, list) else [one])]


def csv(found: Sequence[Any]) -> str:
    """One row for each network, device, stack and batch."""
    return rows_csv([row for one in found for row in module_of(one).rows(one)])
