"""What is known of sources: where each is published and how it measured (`sources.toml`), why predictions of its rows are far off
(`misses.toml`), and what other tools claim of themselves (`peers/claims.toml`)."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from typing import Literal

from archsim.base.errors import InputError
from archsim.base.files import LIMITS, data_folder, read_text
from archsim.base.schema import Form, Word, problems_of
from archsim.base.toml import parsed
from archsim.evidence.case import Case
from archsim.evidence.conditions import ConditionRule, Conditions, of_rules, rules_of
from archsim.evidence.family import FOLDER, PEERS, toml_rows

FILES = "sources.toml", "rules.toml"  # of each source, and rules for rows of every source
RULE = "rule"
FAR = 0.25  # an error of more needs a reason
NOTE = ("On rows and by measures of their own, a mean where others have a median: comparable neither with a score on these rows "
        "nor with each other.")  # fmt: skip


class PublishedSource(Form):
    """What `sources.toml` says of a source besides its rules; `boundary` is what its powers cover."""

    citation: Word
    title: str = ""
    measured: str = ""
    doubts: str = ""
    boundary: str = ""


def source_of(name: str) -> PublishedSource:
    """What is known of a source; its name as citation where it is not described."""
    return sources().get(name) or PublishedSource(citation=name)


def conditions_of(source: str, words: Mapping[str, str]) -> tuple[Conditions, str]:
    """The conditions of a row with these words by column, and why it is used as it is; equal words give the same object.

    Rules of all sources come first, then those of the row's own; in each field the last one that fits decides.
    """
    return _conditions(source, tuple(words.get(name, "") for name in _looked_at(source)))


def sources() -> Mapping[str, PublishedSource]:
    """Every described source by its id. Raises InputError with all problems of the file, each with its table and key."""
    return _shipped()[0]


def rules(source: str) -> tuple[ConditionRule, ...]:
    """The rules for rows of a source, the decisive last."""
    own = _shipped()[1]
    return (*own[""], *own.get(source, ()))


def read_sources(text: str, path: str) -> tuple[dict[str, PublishedSource], dict[str, tuple[ConditionRule, ...]]]:
    """The sources in the text of a file, which `path` names in errors, and the rules of each; "" has those of every source."""
    document, found = parsed(text, path, "sources"), dict[str, PublishedSource]()
    common, problems = rules_of(document.pop(RULE, []), "")
    own = {"": common}
    for name, entry in document.items():
        if not isinstance(entry, dict):
            problems.append(f"{name}: must be a table")
            continue
        own[name], more = rules_of(entry.pop(RULE, []), f"{name}.")
        form, wrong = problems_of(PublishedSource, entry, f"{name}.", also=(RULE,))
        problems += wrong + more
        found |= {} if form is None else {name: form}
    if problems:
        raise InputError(path, problems)
    return found, own


@cache
def _shipped() -> tuple[Mapping[str, PublishedSource], Mapping[str, tuple[ConditionRule, ...]]]:
    files = [data_folder(FOLDER).joinpath(name) for name in FILES]
    of_sources, of_all = (read_sources(read_text(file, LIMITS["sources"].size), str(file)) for file in files)
    return of_sources[0], of_sources[1] | of_all[1]


@cache
def _looked_at(source: str) -> tuple[str, ...]:
    """The columns that rules for rows of a source look at."""
    return tuple(dict.fromkeys(column for rule in rules(source) for column in rule.when))


@lru_cache(maxsize=65536)
def _conditions(source: str, cells: tuple[str, ...]) -> tuple[Conditions, str]:
    return of_rules(rules(source), dict(zip(_looked_at(source), cells, strict=True)))


# --------------------------------------------------------------------------------------------------------------- misses


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
    predicted: Literal["", "too fast", "too slow", "too high", "too low"] = ""

    def matches(self, case: Case) -> bool:
        """Whether a row is one of those that the reason is about, whatever its error."""
        return all(fnmatchcase(value, pattern) for value, pattern in (
            (case.source, self.source), (case.label, self.network), (case.hardware, self.hardware),
            (published_stack(case), self.stack), (case.fields.get("task", case.task), self.task),
            (case.fields.get("threads", ""), self.threads),
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
    return toml_rows(Miss, "miss", FOLDER, "misses.toml")


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
    return toml_rows(Claim, "claim", PEERS, "claims.toml")
