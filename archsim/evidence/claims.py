"""What other tools say of their own accuracy (`peers/claims.toml`): on rows of their own, comparable with no score."""

from __future__ import annotations

from functools import cache

from archsim.base.files import data_folder, read_text
from archsim.base.limits import LIMITS
from archsim.base.schema import Form, Word, rows_of
from archsim.evidence.shipped import PEERS

FILE = "claims.toml"
NOTE = ("On rows and by measures of their own, a mean where others have a median: comparable neither with a score on these rows "
        "nor with each other.")  # fmt: skip


class Claim(Form):
    """One `[[claim]]`: what a tool says, of what, where that was read, and which of its predictions are scored here."""

    tool: Word
    says: Word
    of: Word
    source: Word
    url: Word
    here: Word


@cache
def claims() -> tuple[Claim, ...]:
    """The shipped claims, in the order of the file."""
    place = data_folder(PEERS).joinpath(FILE)
    return rows_of(Claim, "claim", read_text(place, LIMITS["sources"].size), str(place))
