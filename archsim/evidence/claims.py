"""What other tools say of their own accuracy (`peers/claims.toml`): on rows of their own, comparable with no score."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from archsim.base.errors import InputError
from archsim.base.files import data_folder, read_text
from archsim.base.limits import LIMITS
from archsim.base.schema import Form, Word, problems_of
from archsim.base.toml import parsed
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
    return tuple(read_claims(read_text(place, LIMITS["sources"].size), str(place)))


def read_claims(text: str, path: str) -> Sequence[Claim]:
    """The claims in the text of a file, which `path` names in errors. Raises InputError with all problems."""
    document = parsed(text, path, "sources")
    rows = document.pop("claim", [])
    problems = [f"{key}: unknown key; known: claim" for key in document]
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError(path, [*problems, "claim: must be tables `[[claim]]`"])
    found: list[Claim] = []
    for i, row in enumerate(rows, 1):
        form, wrong = problems_of(Claim, row, f"claim {i}: ")
        problems += wrong
        found += [] if form is None else [form]
    if problems:
        raise InputError(path, problems)
    return found
