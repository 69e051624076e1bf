"""What other tools say of themselves, below the page that tells how predictors are scored."""

from __future__ import annotations

from collections.abc import Iterable

from archsim.evidence.claims import NOTE, Claim
from archsim.site.markdown import plain


def section(claims: Iterable[Claim]) -> str:
    """An item for each tool, its source as a link."""
    items = "".join(f"- **{plain(one.tool)}**: {plain(one.says)}; {plain(one.of)}. Here: {plain(one.here)}. "
                    f"[{plain(one.source)}]({one.url})\n" for one in claims)  # fmt: skip
    return f"\n## What other tools say of themselves\n\n{NOTE}\n\n{items}"
