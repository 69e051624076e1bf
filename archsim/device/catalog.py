"""Finding the spec of a device by id, alias, full name or path, or by a few words: "ada 24GB", "jetson 2022", "xeon 56 cores"."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from archsim.base.errors import InputError, UnknownName
from archsim.base.files import data_folder, is_path, named_file
from archsim.base.naming import LONGEST, AmbiguousName, plain, resolve
from archsim.device.device import PARTS, Cpu
from archsim.device.file import FOLDER, load
from archsim.device.spec import Spec
from archsim.device.variant import distance, values_digest

_LAPTOP = re.compile(r"[\s_-](?:laptop|mobile|max[\s-]?q|notebook)(?:[\s_-].*)?$|(?<=\d)m$", re.IGNORECASE)
HINT = "`archsim list hw` prints all; a path to a .toml works too"


@cache
def names() -> tuple[str, ...]:
    """The identifiers of the shipped devices, sorted."""
    return tuple(sorted(f.name[: -len(".toml")] for f in data_folder(FOLDER).iterdir() if f.name.endswith(".toml")))


def find(name_or_path: str, computed: Mapping[str, Callable[[], Spec]] | None = None) -> Spec:
    """The spec of a shipped device (by id, alias or full name) or of a file.

    computed: further names, and the functions that make their specs (`host`, in `archsim.detect.catalog`)

    Raises UnknownName with the nearest names, MissingFile, or InputError for a file that is no spec.
    """
    return _find(name_or_path, (), computed or {})


def _find(name_or_path: str, children: tuple[str, ...], computed: Mapping[str, Callable[[], Spec]]) -> Spec:
    """`children` are the paths of the files that inherit, from the first to the nearest."""
    if name_or_path in names():
        return _shipped(name_or_path)
    if is_path(name_or_path):
        place = os.path.abspath(name_or_path)
        if place in children:
            raise InputError(name_or_path, "inherits: leads back to the file itself")
        return _own(load(named_file(name_or_path), lambda parent: _find(parent, (*children, place), computed)))
    if name_or_path in computed:
        return computed[name_or_path]()
    try:
        return _shipped(resolve("device", name_or_path, names(), aliases, HINT, _makers))
    except AmbiguousName:
        raise
    except UnknownName as error:
        raise _otherwise(name_or_path) or error from None


def _otherwise(name: str) -> UnknownName | None:
    """The error for several names in one, and for a laptop's card, which bears the name of a desktop's and is another chip."""
    if "," in name:
        return UnknownName("device", name, (), hint=f"one at a time; archsim compare --hw {name.replace(' ', '')} takes several")
    bare = _LAPTOP.sub("", name)
    desktop = canonical(bare) if bare != name else ""
    if desktop not in names():
        return None
    known = {key: entry.written.replace(" ", "") for key, entry in _shipped(desktop).entries.items()}
    values = " ".join(f"--set {key}={known[key]}" for key in ("sm.count", "memory.bandwidth") if key in known)
    return UnknownName("device", name, names(), near=(desktop,), hint=(
        "this laptop card is not described; "
        f"laptop: --hw {desktop} --power-limit 80W {values}, with the figures of yours in place of these "
        "(`archsim new hw` keeps them in a file)"))  # fmt: skip


def occupied(spec: Spec, threads: int) -> Spec:
    """The cores of a CPU on which so many threads run: its faster ones where these are enough, else (and for 0) all.

    A scheduler that knows the capacity of cores (Linux, Energy Aware Scheduling) puts few busy threads on the largest ones. More
    threads than those spread over both kinds, and what divides its work evenly waits for the slower ones, which the spec is of.

    >>> [occupied(find("rk3588"), threads).identity.id for threads in (1, 4, 5, 0)]
    ['rk3588_a76', 'rk3588_a76', 'rk3588', 'rk3588']
    """
    return find(spec.identity.faster) if 0 < threads <= faster_cores(spec) else spec


def faster_cores(spec: Spec) -> int:
    """How many of the cores of a CPU are faster than the others; 0 where all are of one kind.

    >>> faster_cores(find("rk3399")), faster_cores(find("i7_6700k"))
    (2, 0)
    """
    if not spec.identity.faster:
        return 0
    fast = find(spec.identity.faster).device
    return int(fast.core.count) if isinstance(fast, Cpu) else 0


def canonical(name_or_path: str) -> str:
    """The id that a name of a shipped device stands for; a path, and what is no shipped device, as it is.

    Raises AmbiguousName.
    """
    if name_or_path in names() or is_path(name_or_path):
        return name_or_path
    try:
        return resolve("device", name_or_path, names(), aliases, HINT, _makers)
    except AmbiguousName:
        raise
    except UnknownName:
        return name_or_path


def spec_beside(measurements: str) -> str:
    """The device file beside a measurement file: the same name with the ending .toml."""
    return str(Path(measurements).with_suffix(".toml")) if Path(measurements).name else ""


@cache
def aliases() -> Mapping[str, tuple[str, ...]]:
    """The other names of every shipped device: its full name and its aliases."""
    return {name: (*([head["name"]] if "name" in head else []), *head.get("aliases", ())) for name, head in _heads().items()}


def _makers() -> set[str]:
    return {head["vendor"] for head in _heads().values() if "vendor" in head}


@cache
def _heads() -> Mapping[str, Mapping[str, Any]]:
    """The words of every shipped file before its tables. Reading them takes a tenth of the time of reading the files."""
    texts = {name: data_folder(FOLDER).joinpath(f"{name}.toml").read_text("utf-8") for name in names()}
    return {name: tomllib.loads(text.partition("\n[")[0]) for name, text in texts.items()}


@cache
def _shipped(name: str) -> Spec:
    spec = load(data_folder(FOLDER).joinpath(f"{name}.toml"), find)
    if spec.identity.id != name:
        raise InputError(spec.path, f"id: is {spec.identity.id!r}, must be {name!r} as the file is called")
    return replace(spec, base=None)  # a device of its own, whatever its file inherits


def _own(spec: Spec) -> Spec:
    """The spec of a user's file: one that bears the id of a shipped device is told apart from that."""
    if spec.base is None and spec.identity.id in names():
        shipped = _shipped(spec.identity.id)
        spec = replace(spec, base=shipped if shipped.kind == spec.kind else None)
    own, known, first = spec.identity, like(spec), spec
    while first.base is not None:
        first = first.base
    origin = first.identity.id if first.identity.id != own.id and is_shipped(first) else ""
    return replace(spec, identity=replace(own, like="" if known == own.architecture else known, origin=origin))


@cache
def heads() -> Mapping[str, Mapping[str, Any]]:
    """The words before the tables of every shipped spec, by id, with those that it inherits."""
    return {name: _with_parents(name, _heads()) for name in _heads()}


def _with_parents(name: str, heads: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    head = heads[name]
    return {**_with_parents(head["inherits"], heads), **head} if "inherits" in head else head


def architectures(kind: str) -> tuple[str, ...]:
    """The architectures of the shipped devices of a kind, sorted."""
    return tuple(sorted({head["architecture"] for head in heads().values() if head["kind"] == kind}))


def like(spec: Spec) -> str:
    """The known architecture whose kernels libraries are taken to have for a device: its own, or, where no shipped device has it,
    that of the spec that it inherits, or that of the shipped device whose SM or core is nearest.
    """
    known = architectures(spec.kind)
    if spec.identity.architecture in known:
        return spec.identity.architecture
    if spec.base is not None and spec.base.identity.kernels_of in known:
        return spec.base.identity.kernels_of
    return nearest_architecture(spec, [_shipped(name) for name, head in heads().items() if head["kind"] == spec.kind])


def nearest_architecture(spec: Spec, others: Iterable[Spec]) -> str:
    """The architecture of the one among other devices whose SM or core is nearest."""
    return min(others, key=lambda other: distance(spec, other)).identity.architecture


def is_shipped(spec: Spec) -> bool:
    """Whether a spec is that of a shipped device, unchanged."""
    return spec.identity.id in names() and _shipped(spec.identity.id).entries is spec.entries


def twins(spec: Spec) -> tuple[str, ...]:
    """The shipped devices with the same values of everything that the models read; of a shipped device itself.

    >>> twins(find("gtx_1080").with_settings({"sm.count": "20"})), twins(find("gtx_1080").with_settings({"sm.count": "40"}))
    (('gtx_1080',), ())
    """
    if is_shipped(spec):  # no two shipped devices have the same values
        return (spec.identity.id,)
    kin = [name for name, head in heads().items()
           if (head["kind"], head["architecture"]) == (spec.kind, spec.identity.kernels_of)]  # fmt: skip
    own = values_digest(spec)
    return tuple(name for name in kin if values_digest(_shipped(name)) == own)


# ---------------------------------------------------------------------------------------------------------- a few words

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
