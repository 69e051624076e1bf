"""Why predictions of published values are far off (`misses.toml`), and what other tools claim (`peers/claims.toml`)."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache
from typing import Literal

from archsim.base.files import data_folder, read_text
from archsim.base.limits import LIMITS
from archsim.base.schema import Form, Word, rows_of
from archsim.evidence.case import Case
from archsim.evidence.shipped import FOLDER, PEERS

FILE, CLAIMS = "misses.toml", "claims.toml"
FAR = 0.25  # an error of more needs a reason
NOTE = ("On rows and by measures of their own, a mean where others have a median: comparable neither with a score on these rows "
        "nor with each other.")  # fmt: skip


class Miss(Form):
    """One `[[miss]]`: patterns (`*` stands for any text) that a row has to match, and the reason.

    `stack` and `threads` are as the source writes them; `predicted` says which misses it explains, both without it.
    """

    source: Word
    reason: Word
    network: Word = "*"
    hardware: Word = "*"
    stack: Word = "*"
    task: Word = "*"
    threads: str = "*"
    metric: Word = "*"
    predicted: Literal["", "too fast", "too slow", "too high", "too low"] = ""

    def matches(self, case: Case) -> bool:
        """Whether a row is one of those that the reason is about, whatever its error."""
        return all(fnmatchcase(value, pattern) for value, pattern in (
            (case.source, self.source), (case.label, self.network), (case.hardware, self.hardware),
            (published_stack(case), self.stack), (case.fields.get("task", case.task), self.task),
            (case.fields.get("threads", ""), self.threads), (case.metric, self.metric),
        ))  # fmt: skip

    def explains(self, error: float) -> bool:
        """Whether it is about an error of this sign."""
        return not self.predicted or (error < 0) == (self.predicted in ("too fast", "too low"))


def published_stack(case: Case) -> str:
    """What the source calls the software of a row."""
    return case.fields.get("stack") or case.stack_id


def reason_of(case: Case, error: float) -> str:
    """Why a prediction misses a published value by more than `FAR`; empty for a smaller error, and where it is not known."""
    if abs(error) <= FAR:
        return ""
    return next((miss.reason for miss in misses() if miss.explains(error) and miss.matches(case)), "")


@cache
def misses() -> tuple[Miss, ...]:
    """The shipped reasons, in the order of the file: the first that fits holds."""
    place = data_folder(FOLDER).joinpath(FILE)
    return rows_of(Miss, "miss", read_text(place, LIMITS["sources"].size), str(place))


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
    place = data_folder(PEERS).joinpath(CLAIMS)
    return rows_of(Claim, "claim", read_text(place, LIMITS["sources"].size), str(place))
