"""`archsim list`."""

from __future__ import annotations

from collections.abc import Callable

import click

from archsim.cli.terminal import say


@click.command("list")
@click.argument("what", type=click.Choice(["hw", "nodes", "nets", "stacks", "parts", "fidelities", "ops"]))
def command(what: str) -> None:
    """List what is shipped: hw (devices), nodes (several devices and their links), nets (networks), stacks, the parts that
    stacks are composed of, fidelities, or op kinds.

    \b
    Examples:
      archsim list hw
      archsim list nets
    """
    lists: dict[str, Callable[[], str]] = {
        "hw": _devices, "nodes": _nodes, "nets": _networks, "stacks": _stacks, "parts": _parts,
        "fidelities": _fidelities, "ops": _ops,
    }  # fmt: skip
    say(lists[what]())


def _devices() -> str:
    from archsim.base.units import show
    from archsim.detect.catalog import find, names
    from archsim.report.text import table

    rows = []
    for spec in map(find, names()):
        device = spec.device
        rows.append(
            (spec.identity.id, spec.identity.name, spec.kind, spec.identity.architecture, str(spec.identity.year),
             show(float(device.peak_flops("fp32")), "FLOP/s", 3), show(float(device.memory.bandwidth), "B/s", 3),
             show(float(device.power.tdp), "W", 3), str(len(spec.assumed)))
        )  # fmt: skip
    return table(("device", "name", "kind", "architecture", "year", "fp32 peak", "memory", "power", "assumed"), rows, left=4)


def _nodes() -> str:
    from archsim.node.spec import find, names
    from archsim.report.text import table

    rows = []
    for spec in map(find, names()):
        node = spec.node
        kinds = ", ".join(dict.fromkeys(kind.type for _, _, kind, _ in node.links))
        host = f"{node.host_cpu.sockets:g} x {node.host_cpu.id}"
        rows.append((node.id, node.name, str(node.devices), host, f"{node.cores:g}", kinds, str(len(spec.assumed))))
    return table(("node", "name", "devices", "host CPU", "cores", "links", "assumed"), rows, left=2)


def _networks() -> str:
    from archsim.base.units import show
    from archsim.report.text import table
    from archsim.trace.file import load, names

    rows = []
    for name in names():
        trace = load(name)
        bound = trace.bind(**(dict.fromkeys(trace.unsized, 1)))
        shapes = ", ".join("x".join(map(str, shape)) for shape in trace.inputs.values())
        counts = (show(bound.macs, "1"), show(bound.parameters, "1"), show(bound.flop, "FLOP", 3))
        rows.append((name, shapes, str(len(trace.ops)), *counts))
    return table(("network", "inputs", "ops", "MACs at N = 1", "parameters", "work at N = 1"), rows, left=2)


def _stacks() -> str:
    from archsim.report.text import table
    from archsim.stack.catalog import composition, find, names

    rows = []
    for stack in map(find, names()):
        forward = stack.conv.candidates("", False).get("forward", {})
        rows.append((stack.id, stack.kind, stack.framework, ", ".join(composition(stack.id).parts.values()), ", ".join(forward)))
    return table(("stack", "kind", "framework", "composed of", "convolution (forward)"), rows, left=5)


def _parts() -> str:
    from archsim.report.text import table
    from archsim.stack.catalog import composition, names
    from archsim.stack.compose import AXES, part_names, part_versions

    rows = []
    composed = {name: composition(name).parts for name in names()}
    for axis in AXES:
        for part in part_names(axis):
            used = [name for name, parts in composed.items() if parts.get(axis, "").partition(" ")[0] == part]
            rows.append((axis, part, ", ".join(part_versions(axis, part)), ", ".join(used)))
    return table(("axis", "part", "versions", "stacks that have it"), rows, left=4)


def _fidelities() -> str:
    from archsim.estimation.fidelity import FIDELITIES
    from archsim.report.text import table

    return table(("fidelity", "meaning"), [(row.name, row.meaning) for row in FIDELITIES.values()], left=2)


def _ops() -> str:
    from dataclasses import fields

    from archsim.report.text import table
    from archsim.trace.op import KINDS

    rows = [(name, ", ".join(f.name for f in fields(kind)), (kind.__doc__ or "").splitlines()[0]) for name, kind in KINDS.items()]
    return table(("op", "attributes", "meaning"), rows, left=3)
