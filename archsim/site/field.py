"""What other tools say of themselves, below the page that tells how predictors are scored."""

from __future__ import annotations

from collections.abc import Iterable

from archsim.evidence.claims import COLUMNS, NOTE, Claim
from archsim.site.markdown import plain, table


def section(claims: Iterable[Claim]) -> str:
    """A row for each tool, its source as a link."""
    rows = [[plain(one.tool), plain(one.says), plain(one.of), plain(one.here), f"[{plain(one.source)}]({one.url})"]
            for one in claims]  # fmt: skip
    return f"\n## What other tools say of themselves\n\n{NOTE}\n\n{table(COLUMNS, rows)}"
