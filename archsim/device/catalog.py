"""Finding the spec of a device by id, alias, full name or path."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from archsim.base.errors import InputError, UnknownName
from archsim.base.files import data_folder, is_path, named_file
from archsim.base.naming import AmbiguousName, resolve
from archsim.device.device import Cpu
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
        "laptop cards are not described, as each laptop sets their power; "
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
