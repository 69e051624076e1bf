"""What comparisons on several networks say: all of them side by side, then each on its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from archsim.answers import module_of, sections_of
from archsim.answers.compare import cross_table
from archsim.answers.contenders import rows_csv
from archsim.render.blocks import Block
from archsim.study.comparison import Comparison
from archsim.study.crosstable import by_network
from archsim.study.standing import titles


def sections(found: Sequence[Any]) -> list[Block]:
    """The blocks of each comparison, and of those at one batch a table of all networks."""
    each = [block for one in found for block in sections_of(one)]
    cross = by_network(found) if all(isinstance(one, Comparison) for one in found) else None
    called = titles([x for one in found for x in one.all]) if cross is not None else {}
    return [*each, *([cross_table(cross, called)] if cross is not None else [])]


def record(found: Sequence[Any]) -> list[dict[str, Any]]:
    """The rows of all comparisons at one batch; of those over batches an object for each."""
    records = [module_of(one).record(one) for one in found]
    return [row for one in records for row in (one if isinstance(one, list) else [one])]


def csv(found: Sequence[Any]) -> str:
    """One row for each network, device, stack and batch."""
    return rows_csv([module_of(one).rows(one) for one in found])
