"""Finding a stack by name or path, and merging the files that it inherits from."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Collection, Mapping
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from archsim.base.errors import InputError, UnknownName
from archsim.base.files import data_folder, read_text
from archsim.base.schema import problems_of
from archsim.base.units import parse
from archsim.stack.form import ConvForm, ConvPhase, MenuForm, OwnKernelsForm, PassesForm, StackForm
from archsim.stack.stack import Attention, Conv, Menu, Passes, Stack, Tile

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
    if not place.is_file() or _document(place).get("abstract", False):
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
    parents = own.get("inherits", [])
    if not isinstance(parents, list):
        raise InputError(str(place), f"inherits: must be a list of stack names, is {parents!r}")
    for parent in parents:
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
        result[key] = _over(value, result[key]) if both and key not in ("algorithms", "tensor") else value
    return result


def _build(place: Path | Traversable) -> Stack:
    document = _merged(place)
    form, problems = problems_of(StackForm, document, "")
    if form is None or (problems := _lacking(form)):
        raise InputError(str(place), problems)
    digest = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:16]
    try:
        conv, reserved = _conv(form.conv), _size("reserved", form.reserved)
    except ValueError as error:
        raise InputError(str(place), str(error)) from None
    return Stack(
        id=form.id, kind=form.kind, framework=form.framework, library=form.library, host=form.host,
        host_unit=form.host_unit, host_calls=form.host_calls, vector=form.vector,
        attention=Attention(
            fused=form.attention.fused, stores=form.attention.stores,
            stores_cached=form.attention.stores_cached, packed=form.attention.packed,
            most_packed=form.attention.most_packed,
        ),
        elementwise_threads=form.elementwise_threads, recurrent=form.recurrent, recurrent_launches=form.recurrent_launches,
        window_slots=form.window_slots, linear_bias=form.linear_bias, half=form.half,
        without_tensor=tuple(form.without_tensor), optimiser=form.optimiser,
        inputs=form.inputs, input_copies=form.input_copies, stall=form.stall, stalls=form.stalls, reserved=reserved,
        variants=form.variants, conv=conv, threaded_ops=tuple(form.threaded_ops), loops=form.loops, waiting=form.waiting,
        vectorised=form.vectorised, packing=form.packing, gather_clocks=form.gather_clocks, grain=form.grain,
        default_threads=form.default_threads,
        multiply_adds=float("inf") if form.multiply_adds is None else form.multiply_adds,
        menus={name: _menu(menu) for name, menu in form.menus.items()},
        passes={op: {phase: _passes(row) for phase, row in rows.items()} for op, rows in form.passes.items()},
        efficiency=form.efficiency,
        optimiser_passes={name: _passes(row) for name, row in form.optimiser_passes.items()},
        sources=tuple(dict.fromkeys(form.sources.values())), digest=digest,
        buffers=form.buffers, in_place=tuple(form.in_place), graphs=form.graphs,
    )  # fmt: skip


def _lacking(form: StackForm) -> list[str]:
    """The rows that every op without a row of its own falls back on."""
    rows = form.passes.get("default", {})
    missing = [f"passes.default.{phase}: is missing" for phase in ("forward", "backward") if phase not in rows]
    return missing + ([] if "default" in form.optimiser_passes else ["optimiser_passes.default: is missing"])


def _size(key: str, written: str) -> float:
    size = parse(written, "B")
    if size < 0:
        raise ValueError(f"{key}: {written} is less than nothing")
    return size


def _conv(form: ConvForm) -> Conv:
    limit = float("inf") if form.workspace_limit is None else _size("conv.workspace_limit", form.workspace_limit)
    return Conv(
        algorithms=_allowed(form.algorithms, form.without), tensor=_allowed(form.tensor, form.without),
        own={name: _own(form, rule) for name, rule in form.own.items()}, workspace_limit=limit,
        grouped=form.grouped, bias=form.bias, layout_copies=form.layout_copies, unfold_threads=form.unfold_threads,
        unfold_flop=form.unfold_flop, unfold_pointwise=form.unfold_pointwise, barrier=form.barrier,
        winograd_patches=tuple([(i, r, c) for i, r, c in form.winograd_patches]),
        index_launches=form.index_launches, filter_taps=form.filter_taps, byte_tensor=form.byte_tensor,
        channel_step=form.channel_step, images=form.images,
    )  # fmt: skip


def _allowed(table: Mapping[ConvPhase, Mapping[str, str]], without: Collection[str]) -> dict[str, dict[str, str]]:
    """The algorithms of a library that a framework lets run."""
    return {str(phase): {name: c for name, c in rows.items() if name not in without} for phase, rows in table.items()}


def _own(form: ConvForm, rule: OwnKernelsForm) -> dict[str, dict[str, str]]:
    """The algorithms on an architecture with kernels of its own."""
    allowed = _allowed(form.algorithms, {*form.without, *rule.without})
    changed = {str(phase): rows for phase, rows in rule.algorithms.items()}
    return {phase: {name: changed.get(phase, {}).get(name, c) for name, c in rows.items()} for phase, rows in allowed.items()}


def _menu(form: MenuForm) -> Menu:
    return Menu(
        tiles=tuple(Tile(**tile.model_dump()) for tile in form.tiles), split_k=tuple(form.split_k),
        split_least_k=form.split_least_k, split_wide=form.split_wide, split_launches=form.split_launches,
        architectures=tuple(form.architectures),
    )  # fmt: skip


def _passes(form: PassesForm) -> Passes:
    return Passes(inputs=form.inputs, outputs=form.outputs, launches=form.launches)
