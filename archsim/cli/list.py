"""`archsim list` and `archsim show`: what is shipped."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar

import click

from archsim.base.arguments import ARGUMENTS
from archsim.base.record import by_key
from archsim.base.units import show
from archsim.cli.output import AnswerForm, answer_forms
from archsim.cli.terminal import show_text
from archsim.cli.vocabulary import Known, flag, option, own

if TYPE_CHECKING:
    from archsim.answers.listing import Listing
    from archsim.device.spec import Spec
    from archsim.render.blocks import Block


# -------------------------------------------------------------------------------------------------------------------- list


DEVICE = ("device", "name", "kind", "architecture", "year", "fp32 peak", "memory", "power", "assumed")
NETWORK = ("network", "inputs", "ops", "MACs at N = 1", "parameters", "work at N = 1")
NEAREST = 10  # devices that --like prints
KINDS = {"gpu": "GPUs", "cpu": "CPUs", "tpu": "TPUs"}


class Listed(click.Choice):  # type: ignore[type-arg]  # no class with parameters in older versions
    """What is listed, also by the word that another would use for it."""

    ALIASES: ClassVar[dict[str, str]] = {"devices": "hw", "hardware": "hw", "networks": "nets"}

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name of what is listed."""
        return str(super().convert(self.ALIASES.get(value, value), param, ctx))


def _listing(head: Sequence[str], rows: Iterable[Sequence[object]], left: int, shown: Sequence[Block] = ()) -> Listing:
    """Rows of which the first `left` columns are words, the others numbers."""
    from archsim.answers.listing import Listing

    return Listing(head=head, rows=[[*map(str, row)] for row in rows], right=range(left, len(head)), shown=shown)


def _devices() -> Listing:
    from archsim.detect.catalog import find, names

    specs = [*map(find, names())]
    return _listing(DEVICE, [_device_row(spec) for spec in specs], 4, _by_maker(specs))


def _by_maker(specs: Sequence[Spec]) -> list[Block]:
    """A table for each kind of device of each maker, those with the most devices first, the newest first."""
    from archsim.answers.listing import table_of

    groups = by_key(((spec.identity.vendor, spec.kind), spec)
                    for spec in sorted(specs, key=lambda spec: (-spec.identity.year, spec.identity.id)))
    found: list[Block] = []
    for (vendor, kind), those in sorted(groups.items(), key=lambda group: -len(group[1])):
        rows = [(row[0], *row[4:8]) for row in map(_device_row, those)]
        head = (f"{vendor} {KINDS[kind]}", "year", "fp32 peak", "memory", "power")
        found.append(table_of(head, rows, range(1, 5)))
    return found


def _devices_like(text: str) -> Listing:
    """The shipped devices that fit a text best, with the share of it that they fit and the size of their memory."""
    from archsim.detect.catalog import find, names
    from archsim.device.catalog import most_alike

    found = most_alike(text, map(find, names()))[:NEAREST]
    if not found:
        raise click.UsageError(f"--like {text!r}: no shipped device has all of these words; say names, architectures "
                               "(ada), makers, kinds (gpu, cpu, tpu), sizes of the memory (24GB), years (2022); "
                               "`archsim list hw` prints all")  # fmt: skip
    rows = [(*_device_row(one.spec), f"{float(one.spec.device.memory.capacity) / 2**30:.4g} GiB", f"{one.match:.2f}")
            for one in found]  # fmt: skip
    return _listing((*DEVICE, "capacity", "match"), rows, 4)


def _device_row(spec: Spec) -> tuple[str, ...]:
    from archsim.answers.device import fp32_peak
    device = spec.device
    return (spec.identity.id, spec.identity.name, spec.kind, spec.identity.architecture, str(spec.identity.year),
            fp32_peak(device), show(float(device.memory.bandwidth), "B/s", 3),
            show(float(device.power.tdp), "W", 3), str(len(spec.assumed)))  # fmt: skip


def _nodes() -> Listing:
    from archsim.node.spec import find, names

    rows = []
    for spec in map(find, names()):
        node = spec.node
        kinds = ", ".join(dict.fromkeys(kind.type for _, _, kind, _ in node.links))
        host = f"{node.host_cpu.sockets:g} x {node.host_cpu.id}"
        rows.append((node.id, node.name, node.devices, host, f"{node.cores:g}", kinds, len(spec.assumed)))
    return _listing(("node", "name", "devices", "host CPU", "cores", "links", "assumed"), rows, 2)


def _systems() -> Listing:
    from archsim.node.system import find, names

    rows = []
    for system in map(find, names()):
        memory = "" if system.host.memory is None else show(system.host.memory, "B", 3)
        host = f"{system.host.sockets:g} x {system.host.cpu or 'that of the device'}"
        rows.append((system.id, system.name, system.devices, host, memory, show(system.supply.rating, "W", 3),
                     len(system.assumed)))  # fmt: skip
    return _listing(("system", "name", "devices", "host CPU", "memory", "supply", "assumed"), rows, 2)


def _networks() -> Listing:
    from archsim.trace.file import load, names

    rows = []
    for name in names():
        trace = load(name)
        bound = trace.bind(**(dict.fromkeys(trace.unsized, 1)))
        shapes = ", ".join("x".join(map(str, shape)) for shape in trace.inputs.values())
        counts = (show(bound.macs, "1"), show(bound.parameters, "1"), show(bound.flop, "FLOP", 3))
        rows.append((name, shapes, str(len(trace.ops)), *counts))
    return _listing(NETWORK, rows, 2, _by_input(rows))


def _by_input(rows: Sequence[Sequence[str]]) -> list[Block]:
    """Networks by what they read; those that a framework builds in its own way at the end."""
    from archsim.answers.listing import table_of

    groups: dict[str, list[Sequence[str]]] = {"Images": [], "Tokens and others": [], "As a framework builds them": []}
    for row in rows:
        other = "Images" if "Nx3x" in row[1] else "Tokens and others"
        groups["As a framework builds them" if "@" in row[0] else other].append(row)
    return [table_of((what, *NETWORK[1:]), own, range(2, 6)) for what, own in groups.items()]


def _models() -> Listing:
    from archsim.generation.memory import parameters_of
    from archsim.trace.huggingface.catalog import aliases, find, names

    rows = []
    for name in names():
        model = find(name)
        counts = (show(number, "1", 4) for number in parameters_of(model))
        rows.append((name, model.model_type, *counts, model.layers, model.width,
                     f"{model.heads}/{model.kv_heads}", model.context, ", ".join(aliases()[name])))  # fmt: skip
    return _listing(("model", "family", "parameters", "active", "layers", "width", "heads/kv", "context", "also"), rows, 2)


def _stacks() -> Listing:
    from archsim.stack.catalog import composition, find, names, rows_of

    rows = []
    for stack in map(find, names()):
        forward = stack.conv.candidates("", False).get("forward", {})
        seen = rows_of(stack)
        rows.append((stack.id, stack.kind, stack.framework, ", ".join(composition(stack.id).parts.values()), ", ".join(forward),
                     seen.own, seen.alike))  # fmt: skip
    return _listing(("stack", "kind", "framework", "composed of", "convolution (forward)", "rows", "of its libraries"), rows, 5)


def _parts() -> Listing:
    from archsim.stack.catalog import composition, names
    from archsim.stack.compose import AXES, part_names, part_versions

    rows = []
    composed = {name: composition(name).parts for name in names()}
    for axis in AXES:
        for part in part_names(axis):
            used = [name for name, parts in composed.items() if parts.get(axis, "").partition(" ")[0] == part]
            rows.append((axis, part, ", ".join(part_versions(axis, part)), ", ".join(used)))
    return _listing(("axis", "part", "versions", "stacks that have it"), rows, 4)


def _releases() -> Listing:
    from archsim.stack.changes import releases

    rows = [(r.part, r.version, r.date or "-", r.effect, r.changed, r.source) for r in releases()]
    return _listing(("part", "release", "date", "key", "what changed", "source"), rows, 6)


def _fidelities() -> Listing:
    from archsim.estimation.fidelity import FIDELITIES

    return _listing(("fidelity", "meaning"), [(row.name, row.meaning) for row in FIDELITIES.values()], 2)


def _ops() -> Listing:
    from archsim.trace.op import KINDS

    rows = [(name, ", ".join(f.name for f in fields(kind)), (kind.__doc__ or "").splitlines()[0]) for name, kind in KINDS.items()]
    return _listing(("op", "attributes", "meaning"), rows, 3)


def _keys() -> Listing:
    from archsim.device.spec import keys, read_by

    rows = [(key, kind, read_by(unit) or "nothing", unit.doc) for kind in ("gpu", "cpu", "tpu") for key, unit, _ in keys(kind)]
    return _listing(("key", "device", "moves", "meaning"), rows, 4)


LISTS: dict[str, Callable[[], Listing]] = {
    "hw": _devices, "nodes": _nodes, "systems": _systems, "nets": _networks, "models": _models, "stacks": _stacks,
    "parts": _parts, "releases": _releases, "fidelities": _fidelities, "ops": _ops, "keys": _keys,
}  # fmt: skip


@click.command("list")
@click.argument("what", type=Listed([*LISTS]))
@answer_forms("Print one CSV row for each.", json="Print a JSON list with an object for each; numbers are texts with their "
              "units, as shown.")
@own("--like", f"Of hw: the {NEAREST} devices that a text describes best by name, architecture, memory, year.", metavar="TEXT")
def list_command(what: str, form: AnswerForm, like: str | None) -> None:
    """List what is shipped: hw (devices), nodes (several devices and their links), systems (computers at the wall), nets
    (networks), models (transformers by their config.json, which are networks too), stacks, the parts that stacks are composed
    of, releases of libraries and engines with what they changed, fidelities, op kinds, or keys: of specs, with what each of
    them moves.

    \b
    Examples:
      archsim list hw
      archsim list hw --like "ada 24GB"
      archsim list nets
    """
    if like is not None and what != "hw":
        raise click.UsageError(f"--like is of hw (devices), not of {what}; `archsim list {what}` prints all")
    form.show(LISTS[what]() if like is None else _devices_like(like))


# -------------------------------------------------------------------------------------------------------------------- show


CATALOGS = {"hw": "device", "node": "node", "net": "network", "stack": "stack"}


def _names(ctx: click.Context, param: click.Parameter, begun: str) -> list[Any]:
    """What a shell completes: names of what was said before."""
    what = CATALOGS.get(ctx.params["what"])
    return Known(what).shell_complete(ctx, param, begun) if what else []


@click.command("show")
@click.argument("what", type=click.Choice([*CATALOGS, "calibration", "silicon", "schema"]))
@click.argument("name", required=False, shell_complete=_names)
@answer_forms(json="Print one JSON object (not of silicon).",
              all="Also print ranges and meanings of the keys of hw, and the release notes of a stack.")  # fmt: skip
@option(ARGUMENTS["bind"], help="Size of a symbol of a network's file (net only).")
@flag("--toml as_toml", "Print a whole file to start one of your own from (hw only).")
def show_command(what: str, name: str | None, form: AnswerForm, bind: dict[str, int] | None, as_toml: bool) -> None:
    """Print a device, node, network or stack, the calibration, the die model, or a JSON Schema, with the source of every number.

    \b
    Examples:
      archsim show hw tegra_x1
      archsim show hw tesla_t4 --toml > mine.toml
      archsim show node dgx_1_v100
      archsim show net alexnet
      archsim show net model.onnx --bind height=224 --bind width=224
      archsim show stack caffe-cudnn4 --json
      archsim show calibration
      archsim show calibration energy.
      archsim show silicon
      archsim show schema estimate
    """
    if as_toml and what != "hw":
        raise click.UsageError(f"show {what} prints no TOML; show hw does")
    if form.json and as_toml:
        raise click.UsageError("--json and --toml both print to standard output; choose one")
    if bind and what != "net":
        raise click.UsageError(f"--bind gives sizes to a network; show {what} has none")
    if what in CATALOGS and name is None:
        raise click.UsageError(f"show {what} needs a name; `archsim list {'hw' if what == 'hw' else what + 's'}` prints them")
    if as_toml:
        from archsim.detect.catalog import find
        from archsim.device.write import to_toml

        spec = find(str(name))
        click.echo(to_toml(spec, f"{spec.identity.name}, every value of it; change id, name and what differs.").rstrip("\n"))
    elif what == "net":
        from archsim.trace.file import network_of

        shown = network_of(str(name), bind or {})
        form.show(shown)
        shown.raise_refused()
    elif what == "stack":
        from archsim.answers import stack
        from archsim.stack.choose import named

        form.show(named(str(name)), stack)
    elif what == "schema":
        from archsim.answers.listing import Listing
        from archsim.answers.schemas import SCHEMAS, schema_of

        if name is not None:
            click.echo(json.dumps(schema_of(name), indent=1, ensure_ascii=False))
            return
        rows = [(each, f"archsim {SCHEMAS[each][0]} --json") for each in sorted(SCHEMAS)]
        form.show(Listing(head=("schema", "what it describes"), rows=rows))
    elif what == "silicon":
        from archsim.answers import silicon

        if form.json:
            raise click.UsageError("show silicon has no JSON form; hwspecs/silicon has its data as TOML")
        show_text(silicon.sections(), form.level)
    elif what == "calibration":
        from archsim.answers.calibration import ShownConstants
        from archsim.calibration.constants import default

        constants = ShownConstants(calibration=default(), prefix=name or "")
        if not constants.constants:
            raise click.UsageError(f"no constant begins with {name!r}; without a prefix all are listed")
        form.show(constants)
    elif what == "node":
        from archsim.node.spec import find as find_node

        form.show(find_node(str(name)))
    else:
        from archsim.detect.catalog import find

        form.show(find(str(name)))
