"""Devices that a few words describe: "ada 24GB", "jetson 2022", "xeon 56 cores"."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from archsim.base.naming import LONGEST, plain
from archsim.device.device import PARTS
from archsim.device.spec import Spec

SHORTEST = 0.8  # similarity of spellings below which a word is another word
YEARS = 5.0  # a device that is that many years away has nothing of a year that was asked for
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(t|g)i?b?(?![a-z0-9])", re.IGNORECASE)
_YEAR = re.compile(r"(?<![\d.])(199\d|20[0-3]\d)(?![\d.])")
_SCALE = {"t": 2.0**40, "g": 2.0**30}


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """What a text asks for: words of names, sizes of the memory [B], years."""

    words: tuple[str, ...]
    sizes: tuple[float, ...]
    years: tuple[int, ...]

    @property
    def parts(self) -> int:
        """How many things it asks for."""
        return len(self.words) + len(self.sizes) + len(self.years)


@dataclass(frozen=True, kw_only=True, slots=True)
class Likeness:
    """How well a device fits a text: 0 to 1, the mean over what the text asks for."""

    spec: Spec
    match: float


def wanted(text: str) -> Wanted:
    """What a text asks for.

    >>> found = wanted("Ada 24 GB 2022")
    >>> found.words, found.years, found.sizes[0] / 2**30
    (('ada',), (2022,), 24.0)
    """
    text = text[:LONGEST]
    sizes = tuple(float(count) * _SCALE[unit.lower()] for count, unit in _SIZE.findall(text))
    rest = _SIZE.sub(" ", text)
    years = tuple(int(year) for year in _YEAR.findall(rest))
    words = (plain(word) for word in re.split(r"[\s,;/_]+", _YEAR.sub(" ", rest)))
    return Wanted(words=tuple(dict.fromkeys(word for word in words if word)), sizes=sizes, years=years)


def most_alike(text: str, specs: Iterable[Spec]) -> list[Likeness]:
    """The devices in the order in which they fit a text, best first; at equal fit one of that very name, then the younger.

    Only devices that have something of every part are among them: a word that fits none leaves none, and so does a year
    in whose vicinity nothing was launched. `gpu`, `cpu` and `tpu` are kinds; sizes rank and do not exclude.
    """
    asked = wanted(text)
    if not asked.parts:
        return []
    found = [Likeness(spec=spec, match=sum(fits) / asked.parts) for spec in specs if min(fits := _fits(asked, spec)) > 0]
    called = plain(text[:LONGEST])
    return sorted(found, key=lambda one: (-round(one.match, 6), called not in _terms(one.spec), -one.spec.identity.year,
                                          one.spec.identity.id))  # fmt: skip


def _fits(asked: Wanted, spec: Spec) -> list[float]:
    """The fit of each part of the text."""
    terms = _terms(spec)
    capacity = float(spec.device.memory.capacity)
    near = [min(size, capacity) / max(size, capacity) for size in asked.sizes]
    words = (float(word == spec.kind) if word in PARTS else _of_word(word, terms) for word in asked.words)
    return [*words, *near,
            *(max(0.0, 1.0 - abs(spec.identity.year - year) / YEARS) for year in asked.years)]  # fmt: skip


def _terms(spec: Spec) -> Sequence[str]:
    """The words of a device: of its names, its architecture, its maker and its memory."""
    known = spec.identity
    texts = (known.id, known.name, *known.aliases, known.architecture, known.vendor, spec.device.memory.type.partition(" ")[0])
    return sorted({plain(word) for text in texts for word in (text, *re.split(r"[\s,;/_()-]+", text))} - {""})


def _of_word(word: str, terms: Sequence[str]) -> float:
    """1 for a word of the device, less for the beginning of one or a similar spelling, 0 for another word."""
    if word in terms:
        return 1.0
    if len(word) > 2 and any(word in term for term in terms):
        return 0.9
    if word.isdigit() or len(word) < 3:  # another number is another model
        return 0.0
    best = max(difflib.SequenceMatcher(None, word, term).ratio() for term in terms)
    return best if best >= SHORTEST else 0.0
