"""Finding the spec of a device by id, alias, full name or path."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from archsim.base.errors import InputError, UnknownName
from archsim.base.files import data_folder
from archsim.device.file import load
from archsim.device.spec import Spec

FOLDER = "hwspecs"


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
    if "/" in name_or_path or "\\" in name_or_path or name_or_path.endswith(".toml"):
        place = os.path.abspath(name_or_path)
        if place in children:
            raise InputError(name_or_path, "inherits: leads back to the file itself")
        return load(Path(name_or_path), lambda parent: _find(parent, (*children, place), computed))
    if name_or_path in computed:
        return computed[name_or_path]()
    wanted = _plain(name_or_path)
    matches = sorted({device for alias, device in _aliases() if alias == wanted})
    if len(matches) == 1:
        return _shipped(matches[0])
    if matches:
        raise UnknownName("device", name_or_path, [], hint=f"it could be {' or '.join(matches)}")
    raise UnknownName("device", name_or_path, names(), hint="`archsim list hw` prints all; a path to a .toml works too")


def _plain(name: str) -> str:
    """A name without case, spaces and punctuation, so that `GTX-1080` finds gtx_1080."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


@cache
def _shipped(name: str) -> Spec:
    spec = load(data_folder(FOLDER).joinpath(f"{name}.toml"), find)
    if spec.identity.id != name:
        raise InputError(spec.path, f"id: is {spec.identity.id!r}, must be {name!r} as the file is called")
    return spec


@cache
def _aliases() -> tuple[tuple[str, str], ...]:
    """Every alias and full name of every shipped device, with the device's id."""
    specs = [_shipped(name) for name in names()]
    identities = [spec.identity for spec in specs]
    return tuple((_plain(alias), i.id) for i in identities for alias in (*i.aliases, i.name, i.id))
