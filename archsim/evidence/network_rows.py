"""Rows of whole networks: one batch or step, epochs under a power limit, and language models that an engine served."""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING

from archsim.base.errors import ArchsimError
from archsim.device.device import Cpu
from archsim.device.spec import Spec
from archsim.evidence.case import METRICS, QUANTITY, SYSTEM_METRICS, TIMERS, Anchor, Case, DeviceGroup, ServingPattern, Timer
from archsim.evidence.family import Family, family_called, shipped_files
from archsim.evidence.row import PublishedRow, Refused, Setting, host_of, integer, network, not_described, parameters, row_of
from archsim.evidence.sources import Conditions, source_of
from archsim.evidence.table import Row, table_name
from archsim.stack import catalog as stacks
from archsim.trace.formats import Sizes
from archsim.trace.huggingface import catalog as models
from archsim.trace.task import Work, updated_by
from archsim.trace.trace import BoundOp

if TYPE_CHECKING:
    from archsim.node.system import PoweredSystem

Files = Callable[[], Iterable[Traversable]]
TOGETHER = "+"  # between the names of ops that ran as one
MOST_THREADS = 1 << 16
_RESULT = re.compile(r"/results/([^/]+)/")  # what MLPerf calls a system
_ACCELERATORS = re.compile(r"[a-zA-Z]x(\d{1,2})(?=[_-])")
_PACKAGES = re.compile(r"(\d{1,4}) packages?, ")  # what `archsim measure` says that RAPL covered
_SIZE = re.compile(r"(\S+)=([1-9]\d{0,8})(?!\S)")
_VCPUS = re.compile(r"\((\d{1,5}) vCPU\)")


def read_network(row: PublishedRow) -> Iterator[Case]:
    """The one case of a row; Refused where its network, device, stack or conditions are not described."""
    cells, metric, name = row.cells, row.cells["metric"], row.words["network"]
    if metric not in METRICS:
        raise Refused(f"metric {metric!r} is not one of {', '.join(METRICS)}")
    if cells.get("out_len"):
        raise Refused("the generation of tokens one by one is not modelled")
    how = row.conditions(metric)
    found = row.ran(how, threads=_counted_threads(cells))
    task, batch = how.task or row.words["task"], integer(cells, "batch")
    group, samples = _group(cells, how, task), max(1, batch // how.per_sample)
    devices = 1 if group is None else group.devices
    if samples % devices:
        raise Refused(f"{devices} devices cannot share {samples} samples evenly")
    work = work_of(how, found, name, task, _sizes(cells.get("bind", "")))
    trace = network(work, samples // devices, how.tokens or (integer(cells, "seq_len") if cells.get("seq_len") else None))
    _same_spec(cells.get("spec_hash", ""), found.spec)
    _same_packages(cells.get("covers", ""), metric, found.spec)
    alone = cells.get("op", "")
    system = _system(cells, found.spec, host_of(how, found.spec)) if metric in SYSTEM_METRICS else None
    place = cells.get("source_ref", "")
    limited = "MaxQ" in place and "offline" in place.lower()  # results of best efficiency, measured under a limit of power
    yield row.case(
        name, metric, float(cells["value"]), how=how, ran=found, task=task, batch=batch, work=None if alone else work,
        trace=replace(trace, ops=_only(trace.ops, alone)) if alone else trace, timer=_timer(how, found), group=group,
        system=system, limit=system[0].limits.get(found.spec.identity.id) if system and limited else None,
        threads=found.threads or None if found.spec.kind == "cpu" else None,
    )  # fmt: skip


def work_of(how: Conditions, ran: Setting, name: str, task: str, sizes: Sizes = ()) -> Work:
    """What the ops of a task of a network are made of, as a stack runs it under these conditions."""
    graph = how.graph or ran.stack.variants.get(name, name)
    try:
        optimiser = how.optimiser or updated_by(None, task, graph, ran.stack.optimiser)[0]
    except ArchsimError as error:
        raise not_described("network", graph, error) from None
    return Work(graph, task, optimiser, how.input_gradient, ran.stack.attention.fused, sizes).now


def _timer(how: Conditions, ran: Setting) -> Timer:
    """The timer, of a stack that can record graphs, and of one that always does."""
    if how.timer == "graph" and not ran.stack.records:
        return TIMERS["host_sync"]
    return TIMERS["graph" if ran.stack.replays and TIMERS[how.timer].host else how.timer]


def _sizes(text: str) -> Sizes:
    """`height=320 width=320`: sizes of symbols by the names that the network's file has for them."""
    found = tuple(sorted((name, int(size)) for name, size in _SIZE.findall(text)))
    if len(found) != len(text.split()):
        raise Refused(f"bind {text!r} is not NAME=SIZE, such as height=320, with spaces between")
    return found


def _group(cells: Mapping[str, str], how: Conditions, task: str) -> DeviceGroup | None:
    """The devices of a row that share its batch, in the node that its source names; None for one device."""
    devices = integer(cells, "devices=1")
    if devices == 1:
        return None
    if not how.node:
        raise Refused(f"{devices} devices: no node is named for source {cells['source']!r}")
    if task != "training_step" or QUANTITY[cells["metric"]] != "time":
        raise Refused(f"{devices} devices: only the time of training steps is modelled")
    from archsim.node.spec import find as find_node

    node = find_node(how.node).node
    if devices > node.devices:
        raise Refused(f"{devices} devices: node {node.id} holds {node.devices}")
    return DeviceGroup(node=node, devices=devices, overlaps=False)


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


def _counted_threads(cells: Mapping[str, str]) -> int:
    """The threads of a row; 0 where it does not say."""
    text = cells.get("threads", "").strip()
    if text.isdecimal() and float(text) > MOST_THREADS:
        raise Refused(f"more than {MOST_THREADS} threads")
    return threads(cells) or 0


def threads(cells: Mapping[str, str]) -> int | None:
    """Threads as given; "vCPUs/2" of a cloud instance by its number of vCPUs, where the source names it; else None.

    More than any computer has are as none.
    """
    text = cells.get("threads", "").strip()
    if text.isdecimal() and 0 < float(text) <= MOST_THREADS:
        return int(text)
    match = _VCPUS.search(cells.get("source_ref", "")) if "vCPUs/2" in text else None
    return max(1, int(match[1]) // 2) if match else None


def network_cases(network: str, hardware: str, wanted: Callable[[Mapping[str, str]], bool]) -> Iterator[Case]:
    """The cases of a whole network on a device whose columns are `wanted`; rows that cannot be predicted are left out."""
    for row in rows_with("networks", shipped_files, (network, hardware)):
        cells = row[1].cells
        if (cells["network"], cells["hardware"]) == (network, hardware) and not cells.get("op") and wanted(cells):
            with suppress(Refused):
                yield from read_network(row_of(*row))


def rows_with(family: str, files: Files, words: Iterable[str]) -> Iterator[tuple[Family, Row, str]]:
    """The rows of a family in shipped files whose lines have all these words, each with its file.

    Lines are searched as text first: an estimate must not pay for reading rows that it will not show.
    """
    for name, header, lines in _lines_of(family, files):
        near = [(number, line) for number, line in lines if all(word in line for word in words)]
        for (number, _), cells in zip(near, csv.DictReader([header, *(line for _, line in near)]), strict=True):
            yield family_called(family), Row(number, cells), name


@cache
def _lines_of(family: str, files: Files) -> Sequence[tuple[str, str, Sequence[tuple[int, str]]]]:
    """Name, header and numbered lines of the files of a family, told by its header; others are read no further than that."""
    found, columns = [], set(family_called(family).columns)
    for file in files():
        with file.open("rb") as stream, gzip.GzipFile(fileobj=stream) as inflated:
            text = io.TextIOWrapper(inflated if file.name.endswith(".gz") else stream, "utf-8-sig")
            header = text.readline()
            if columns <= set(header.strip().split(",")):
                found.append((table_name(file.name), header, tuple(enumerate(text, start=2))))
    return found


# ------------------------------------------------------------------------------------------------------- epochs under a limit

TASKS = {"training": "training_step"}
MOST_POWER = 1e6  # W


def read_epoch(row: PublishedRow) -> Iterator[Case]:
    """The case of a row of power: its mean; of a row of energy: its energy, and its time as energy / mean power.

    Epochs hold what no network does (loading, decoding), so their times and energies are compared as ratios to the run of the
    same batch under the highest limit, in which that cancels; the mean power is compared as it is.
    """
    cells, limit = row.cells, _epoch_limit(row.cells)
    if limit is None:
        raise Refused("no power limit is given")
    if integer(cells, "n_devices=1") != 1:
        raise Refused("several devices are not modelled")
    how = row.conditions(cells["metric"])
    found, batch = row.ran(how), integer(cells, "batch")
    task = TASKS.get(cells["task"], cells["task"])
    work = work_of(how, found, cells["model"], task)
    trace = network(work, batch, how.tokens or None)
    fields = {**cells, "source": row.source, "power_limit_w": f"{limit:g}", "boundary": source_of(row.source).boundary}

    def case(metric: str, measured: float, anchor: Anchor | None = None) -> Case:
        return row.case(work.net, metric, measured, how=how, ran=found, trace=trace, fields=fields, task=task, work=work,
                        batch=batch, limit=limit, anchor=anchor)  # fmt: skip

    if cells["metric"] == "power_w":
        yield case("power_w", float(cells["value"]))
        return
    if cells["metric"] != "energy_j":
        raise Refused(f"metric {cells['metric']!r} is not power_w or energy_j")
    energy, power = ({at: float(one["value"]) for one in row.beside if one["metric"] == metric and one["value"]
                      and parameters(one).get("optimizer") == parameters(cells).get("optimizer") and (at := _epoch_limit(one))}
                     for metric in ("energy_j", "power_w"))  # fmt: skip
    top = max(energy)
    if limit == top or limit not in power or top not in power:
        raise Refused("the run to which those under a lower limit are compared" if limit == top else "no mean power is given")
    yield case("energy_j", energy[limit], Anchor(limit=top, measured=energy[top]))
    yield case("latency_s", energy[limit] / power[limit], Anchor(limit=top, measured=energy[top] / power[top]))


def _epoch_limit(cells: Mapping[str, str]) -> float | None:
    limit = parameters(cells).get("power_limit_w")
    return float(limit) if isinstance(limit, int | float) and 0 < limit < MOST_POWER else None


# ------------------------------------------------------------------------------------------------------- served models

SERVED = ("ttft_s", "decode_s_per_token", "tpot_s", "e2e_s", "tokens_per_s", "energy_j_per_token", "power_w")
_CHUNK = re.compile(r"-nb(\d{1,6})\Z")
_STEADY = re.compile(r"concurrency=(\d{1,7})\Z")


def read_served(row: PublishedRow) -> Iterator[Case]:
    """The one case of a row; Refused where its model, device, engine or conditions are not described."""
    cells, metric = row.cells, row.cells["metric"]
    if metric not in SERVED:
        raise Refused(f"metric {metric!r} is not one of {', '.join(SERVED)}")
    if row.spec.kind != "gpu":
        raise Refused(f"{row.spec.identity.id} is no GPU")
    steady = _STEADY.match(cells["arrival"])
    if not steady and cells["arrival"] != "static":
        raise Refused(f"arrival {cells['arrival']!r} is not static or concurrency=N; `archsim simulate serve --llm` has arrivals")
    how = row.conditions(metric)
    engine = row.words["stack"] or how.stack
    if not engine:
        raise Refused(f"engine {cells['engine']!r} is not described")
    prompt = how.tokens or int(float(cells["input_len"] or 0))
    if not prompt or not cells["output_len"]:
        raise Refused("lengths of prompts or answers are not given")
    chunk = _CHUNK.search(cells["engine"])
    pattern = ServingPattern(
        model=_model(cells["model"]), engine=engine, input=prompt, output=float(cells["output_len"]), batch=float(cells["batch"]),
        steady=steady is not None, prompt_chunk=int(chunk[1]) if chunk else 0, arguments=_arguments(cells),
    )  # fmt: skip
    ran = Setting(spec=row.spec, stack=stacks.find(engine, row.spec.identity.kernels_of), precision=cells["precision"])
    yield row.case(cells["model"], metric, float(cells["value"]), how=how, ran=ran, pattern=pattern,
                   batch=max(1, round(float(cells["batch"]))))  # fmt: skip


def engine_of(written: str) -> str:
    """An engine of a row without the size of its prompt steps, which llama.cpp's rows state with it.

    >>> engine_of("llama.cpp-nb16"), engine_of("vllm-0.5.4")
    ('llama.cpp', 'vllm-0.5.4')
    """
    return _CHUNK.sub("", written)


def _model(name: str) -> str:
    try:
        return models.canonical(name)
    except ArchsimError:
        raise Refused(f"model {name!r} is not described") from None


def _arguments(cells: Mapping[str, str]) -> dict[str, object]:
    """`fp8/kv_fp8` as formats of weights and cache, and the devices that share layers."""
    weights, _, kv = cells["precision"].partition("/kv_")
    base = weights if weights in ("bf16", "fp16") else "fp16"
    tp, pp = int(float(cells.get("tp") or 1)), int(float(cells.get("pp") or 1))
    return {"precision": base, "weights": weights, "kv": kv or base, "tp": tp, "pp": pp}
