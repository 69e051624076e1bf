"""Finding a stack by name or path, and merging the files that it inherits from."""

from __future__ import annotations

import hashlib
import json
import tomllib
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from archsim.errors import InputError, UnknownName
from archsim.files import data_folder, read_text
from archsim.form import problems_of
from archsim.quantity import parse
from archsim.stack.form import ConvForm, MenuForm, PassesForm, StackForm
from archsim.stack.stack import Conv, Menu, Passes, Stack, Tile

FOLDER = "traces/stacks"
SIZE_LIMIT = 256 * 1024
DEPTH_LIMIT = 8


@cache
def names() -> tuple[str, ...]:
    """The identifiers of the shipped stacks that can run a network, sorted."""
    files = [f for f in data_folder(FOLDER).iterdir() if f.name.endswith(".toml")]
    return tuple(sorted(f.name[: -len(".toml")] for f in files if not _document(f).get("abstract", False)))


@cache
def find(name_or_path: str) -> Stack:
    """The stack of a shipped name or of a file; UnknownName with the nearest names, or InputError."""
    if "/" in name_or_path or name_or_path.endswith(".toml"):
        return _build(Path(name_or_path))
    place = data_folder(FOLDER).joinpath(f"{name_or_path}.toml")
    if not place.is_file() or name_or_path not in names():
        raise UnknownName("stack", name_or_path, names(), hint="`archsim list stacks` prints all")
    return _build(place)


def _document(place: Path | Traversable) -> dict[str, Any]:
    try:
        return tomllib.loads(read_text(place, SIZE_LIMIT))
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise InputError(str(place), f"is not valid TOML: {error}") from None


def _merged(place: Path | Traversable, depth: int = 0) -> dict[str, Any]:
    """The file's content over that of the files it inherits from, later ones over earlier ones."""
    own = _document(place)
    if depth > DEPTH_LIMIT:
        raise InputError(str(place), f"inherits: more than {DEPTH_LIMIT} levels deep, or a circle")
    merged: dict[str, Any] = {}
    for parent in own.get("inherits", []):
        base = data_folder(FOLDER).joinpath(f"{parent}.toml")
        if not base.is_file():
            raise InputError(str(place), f"inherits: no stack file {parent!r}")
        merged = _over(_merged(base, depth + 1), merged)
    merged.pop("abstract", None)
    return _over(own, merged)


def _over(top: dict[str, Any], below: dict[str, Any]) -> dict[str, Any]:
    result = dict(below)
    for key, value in top.items():
        both = isinstance(value, dict) and isinstance(result.get(key), dict)
        # A table of algorithms replaces the inherited one: a library generation lists all that it has.
        result[key] = _over(value, result[key]) if both and key != "algorithms" else value
    return result


def _build(place: Path | Traversable) -> Stack:
    document = _merged(place)
    form, problems = problems_of(StackForm, document, "")
    if form is None:
        raise InputError(str(place), problems)
    digest = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:16]
    try:
        conv, reserved = _conv(form.conv), parse(form.reserved, "B")
    except ValueError as error:
        raise InputError(str(place), str(error)) from None
    return Stack(
        id=form.id, kind=form.kind, framework=form.framework, library=form.library, host=form.host,
        elementwise_threads=form.elementwise_threads, recurrent=form.recurrent, recurrent_launches=form.recurrent_launches,
        inputs=form.inputs, reserved=reserved, variants=form.variants, conv=conv,
        menus={name: _menu(menu) for name, menu in form.menus.items()},
        passes={op: {phase: _passes(row) for phase, row in rows.items()} for op, rows in form.passes.items()},
        efficiency=form.efficiency,
        optimiser_passes={name: _passes(row) for name, row in form.optimiser_passes.items()},
        sources=tuple(dict.fromkeys(form.sources.values())), digest=digest,
    )  # fmt: skip


def _conv(form: ConvForm) -> Conv:
    limit = float("inf") if form.workspace_limit is None else parse(form.workspace_limit, "B")
    algorithms = {str(phase): dict(rows) for phase, rows in form.algorithms.items()}
    return Conv(algorithms=algorithms, workspace_limit=limit, grouped=form.grouped, bias=form.bias)


def _menu(form: MenuForm) -> Menu:
    tiles = [Tile(m=t.m, n=t.n, k=t.k, threads=t.threads, registers=t.registers, shared=t.shared) for t in form.tiles]
    return Menu(tiles=tuple(tiles), split_k=tuple(form.split_k))


def _passes(form: PassesForm) -> Passes:
    return Passes(inputs=form.inputs, outputs=form.outputs, launches=form.launches)
