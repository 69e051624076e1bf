"""What is known of each source of measurements: where it is published, what to doubt, and how it measured (`sources.toml`)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache

from archsim.base.errors import InputError
from archsim.base.files import data_folder, read_text
from archsim.base.limits import LIMITS
from archsim.base.schema import Form, Word, problems_of
from archsim.base.toml import parsed
from archsim.evidence.conditions import ConditionRule, Conditions, of_rules, rules_of
from archsim.evidence.shipped import FOLDER

FILE, COMMON = "sources.toml", "rules.toml"
RULE = "rule"


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


def citation(name: str) -> str:
    """The short citation of a source; its id where it is not described."""
    return source_of(name).citation


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
    return (*_common(), *_shipped()[1].get(source, ()))


def read_sources(text: str, path: str) -> tuple[dict[str, PublishedSource], dict[str, tuple[ConditionRule, ...]]]:
    """The sources in the text of a file, which `path` names in errors, and the rules of each."""
    found: dict[str, PublishedSource] = {}
    own: dict[str, tuple[ConditionRule, ...]] = {}
    problems: list[str] = []
    for name, entry in parsed(text, path, "sources").items():
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
    place = data_folder(FOLDER).joinpath(FILE)
    return read_sources(read_text(place, LIMITS["sources"].size), str(place))


@cache
def _common() -> tuple[ConditionRule, ...]:
    place = data_folder(FOLDER).joinpath(COMMON)
    document = parsed(read_text(place, LIMITS["sources"].size), str(place), "sources")
    found, problems = rules_of(document.pop(RULE, None), "")
    if problems or document:
        raise InputError(str(place), problems + [f"{name}: unknown key; known: {RULE}" for name in document])
    return found


@cache
def _looked_at(source: str) -> tuple[str, ...]:
    """The columns that rules for rows of a source look at."""
    return tuple(dict.fromkeys(column for rule in rules(source) for column in rule.when))


@lru_cache(maxsize=65536)
def _conditions(source: str, cells: tuple[str, ...]) -> tuple[Conditions, str]:
    return of_rules(rules(source), dict(zip(_looked_at(source), cells, strict=True)))
