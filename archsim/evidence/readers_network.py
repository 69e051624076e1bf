"""Rows of whole networks, under the conditions that the row and its source state."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from archsim.device.device import Cpu
from archsim.device.spec import Spec
from archsim.evidence.case import METRICS, SYSTEM_METRICS, Case, DeviceGroup, Skip
from archsim.evidence.columns import QUANTITY
from archsim.evidence.family import Family, integer
from archsim.evidence.resolve import Refused, as_timed, device, host_cpu, network, setting, usual_optimiser
from archsim.evidence.sources import Protocol, protocol
from archsim.evidence.table import Row
from archsim.trace.formats import Sizes
from archsim.trace.task import Work
from archsim.trace.trace import BoundOp

if TYPE_CHECKING:
    from archsim.node.system import PoweredSystem

TOGETHER = "+"  # between the names of ops that ran as one
MOST_THREADS = 1 << 16
LONGEST_COUNT = 8  # characters of a number of threads
_HALF_OF_VCPUS = re.compile(r"vCPUs/2")
_RESULT = re.compile(r"/results/([^/]+)/")  # what MLPerf calls a system
_ACCELERATORS = re.compile(r"[a-zA-Z]x(\d{1,2})(?=[_-])")
_BEST_EFFICIENCY, _OFFLINE = re.compile("MaxQ"), re.compile("offline", re.IGNORECASE)
_PACKAGES = re.compile(r"(\d{1,4}) packages?, ")  # what `archsim measure` says that RAPL covered
_SIZE = re.compile(r"(\S+)=([1-9]\d{0,8})(?!\S)")
_VCPUS = re.compile(r"\((\d{1,5}) vCPU\)")


def read(row: Row, file: str) -> list[Case | Skip]:
    """The one case of a row; Refused where its network, device, stack or conditions are not described."""
    cells = row.cells
    metric = cells["metric"]
    if metric not in METRICS:
        raise Refused(f"metric {metric!r} is not one of {', '.join(METRICS)}")
    if cells.get("out_len"):
        raise Refused("the generation of tokens one by one is not modelled")
    script = protocol(cells["source"])
    name, batch, task = cells["network"], integer(cells, "batch"), cells["task"]
    asked = _counted_threads(cells) if script.counted(cells.get("source_ref", "")) else None
    precision = script.precision(cells["precision"], cells.get("source_ref", ""))
    found = as_timed(setting(cells["hardware"], cells.get("ran") or cells["stack"], precision, threads=asked or 0), script, name,
                     cells.get("source_ref", ""))  # fmt: skip
    framework = found.stack.framework
    ran = script.task(task, name, framework)
    group = _group(cells, script, framework, ran)
    samples = _share(script.samples(batch, name, framework), 1 if group is None else group.devices)
    graph = script.graph(name, framework, task, found.stack.variants.get(name, name))
    tokens = integer(cells, "seq_len") if cells.get("seq_len") else script.lengths.get(name)
    optimiser = script.optimiser(name, framework, usual_optimiser(ran, graph, found.stack.optimiser))
    work = Work(graph, ran, optimiser, script.of_inputs(name, framework), found.stack.attention.fused, script.loss_apart,
                _sizes(cells.get("bind", ""))).now  # fmt: skip
    trace = network(work, samples, tokens)
    _same_spec(cells.get("spec_hash", ""), found.spec)
    _same_packages(cells.get("covers", ""), metric, found.spec)
    alone = cells.get("op", "")
    host = host_cpu(script, found.spec)
    system = _system(cells, found.spec, host) if metric in SYSTEM_METRICS else None
    return [
        Case(
            line=row.line, fields=cells, source=cells["source"], label=name, hardware=device(cells["hardware"]).identity.id,
            stack_id=found.stack.id, task=ran, metric=metric, measured=float(cells["value"]),
            split=cells.get("split", ""),
            trace=replace(trace, ops=_only(trace.ops, alone)) if alone else trace, work=None if alone else work,
            spec=found.spec, stack=found.stack, precision=found.precision, batch=batch,
            threads=found.threads or None if found.spec.kind == "cpu" else None,
            clock=_clock(cells, script), group=group, dispatch=float(not alone), host_cpu=host, file=file,
            replayed=found.stack.graphs and (found.stack.replays or script.replays(cells.get("source_ref", ""))), system=system,
            limit=_limit(cells, found.spec, system),
        )
    ]  # fmt: skip


def _sizes(text: str) -> Sizes:
    """`height=320 width=320`: sizes of symbols by the names that the network's file has for them."""
    found = tuple(sorted((name, int(size)) for name, size in _SIZE.findall(text)))
    if len(found) != len(text.split()):
        raise Refused(f"bind {text!r} is not NAME=SIZE, such as height=320, with spaces between")
    return found


def _group(cells: Mapping[str, str], script: Protocol, framework: str, task: str) -> DeviceGroup | None:
    """The devices of a row that share its batch, in the node that its source names; None for one device."""
    devices = integer(cells, "devices", 1)
    if devices == 1:
        return None
    if not script.node:
        raise Refused(f"{devices} devices: no node is named for source {cells['source']!r}")
    if task != "training_step" or QUANTITY[cells["metric"]] != "time":
        raise Refused(f"{devices} devices: only the time of training steps is modelled")
    from archsim.node.spec import find as find_node

    node = find_node(script.node).node
    if devices > node.devices:
        raise Refused(f"{devices} devices: node {node.id} holds {node.devices}")
    return DeviceGroup(node=node, devices=devices, overlaps=framework in script.overlapping)


def _system(cells: Mapping[str, str], spec: Spec, host: Spec | None) -> tuple[PoweredSystem, int]:
    """The computer of a row at its plug and the devices in it: as a file describes it, otherwise the usual one of the device.

    The name of the result says how many accelerators there are: `A100-PCIe-80GBx8_TRT_MaxQ`.
    """
    from archsim.detect.catalog import find as find_device
    from archsim.node.system import of_result, usual

    result = _RESULT.search(cells.get("source_ref", ""))
    name = result[1] if result else ""
    described, count = of_result(name), _ACCELERATORS.search(name)
    if described is not None:
        return described, described.devices
    devices = int(count[1]) if count else 1
    if isinstance(spec.device, Cpu):
        return usual(spec.device, None, spec.identity.id), devices
    beside = find_device(spec.device.launch.host_cpu) if host is None else host
    assert isinstance(beside.device, Cpu)  # as the specs of GPUs name it
    return usual(spec.device, beside.device, beside.identity.id), devices


def _limit(cells: Mapping[str, str], spec: Spec, system: tuple[PoweredSystem, int] | None) -> float | None:
    """The power limit under which a row of best efficiency was measured [W], where the file of its system has it."""
    if system is None or not _BEST_EFFICIENCY.search(cells.get("source_ref", "")):
        return None
    return system[0].limits.get(spec.identity.id) if _OFFLINE.search(cells.get("source_ref", "")) else None


def _share(samples: int, devices: int) -> int:
    if samples % devices:
        raise Refused(f"{devices} devices cannot share {samples} samples evenly")
    return samples // devices


def _same_spec(written: str, spec: Spec) -> None:
    """A row that says which spec it was measured with is not predicted with another."""
    if written and written != spec.digest:
        raise Refused(f"measured with another spec of {spec.identity.id!r} (hash {written}, this one has {spec.digest}); "
                      "name its file with --hw")  # fmt: skip


def _same_packages(covers: str, metric: str, spec: Spec) -> None:
    """Energy that `archsim measure` counted is comparable where it is that of the packages of the spec."""
    if QUANTITY[metric] == "time" or not covers.endswith(", RAPL"):
        return
    counted = _PACKAGES.match(covers)
    if counted is None:
        raise Refused(f"covers {covers}: only the power of packages is predicted")
    if isinstance(spec.device, Cpu) and int(counted[1]) != spec.device.core.sockets:
        raise Refused(f"covers {covers}, but {spec.identity.id} has {spec.device.core.sockets:g} sockets")


def _only(ops: tuple[BoundOp, ...], names: str) -> tuple[BoundOp, ...]:
    """The ops that a row is about, which were timed together."""
    wanted = names.split(TOGETHER)
    found = tuple([op for op in ops if op.name in wanted])
    if len(found) != len(wanted):
        absent = sorted(set(wanted) - {op.name for op in found})
        raise Refused(f"the network has no op {', '.join(absent)}")
    return found


def _clock(cells: Mapping[str, str], script: Protocol) -> float | None:
    """The core clock [Hz] of a row, or that at which its source ran all of this hardware."""
    written = cells.get("clock_mhz") or script.clocks.get(cells["hardware"])
    return float(written) * 1e6 if written else None


def _counted_threads(cells: Mapping[str, str]) -> int | None:
    text = cells.get("threads", "").strip()
    if text.isdecimal() and threads(cells) is None and text.strip("0"):
        raise Refused(f"more than {MOST_THREADS} threads")
    return threads(cells)


def threads(cells: Mapping[str, str]) -> int | None:
    """Threads as given; "vCPUs/2" of a cloud instance by its number of vCPUs, where the source names it; else None.

    More than any computer has are as none.
    """
    text = cells.get("threads", "").strip()
    if text.isdecimal() and len(text) <= LONGEST_COUNT and 0 < int(text) <= MOST_THREADS:
        return int(text)
    match = _VCPUS.search(cells.get("source_ref", "")) if _HALF_OF_VCPUS.search(text) else None
    return max(1, int(match[1]) // 2) if match else None


FAMILY = Family(
    name="networks",
    columns=("source", "network", "hardware", "stack", "task", "batch", "precision", "metric", "value"),
    words=("source", "network", "hardware", "task", "batch", "precision", "metric"),
    numbers=("value", "clock_mhz"),
    whole=("batch", "devices", "rounds"),
    offsets=("disturbed",),
    measured=("value",),
    read=read,
)
