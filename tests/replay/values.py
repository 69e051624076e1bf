"""What the replay watches: each row of the published corpus, each device, network and stack once, and lines of all commands."""

from __future__ import annotations

import gc
import gzip
import io
import json
import math
import multiprocessing
import shlex
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

Value = float | str
Values = dict[str, dict[str, list[Value]]]
"""group -> key -> values: of a row its error (NaN where none is known), the prediction and the ends of its interval."""

COMMANDS = Path(__file__).with_name("commands.txt")
UNPACKED = Path("build/replay")  # where inputs that the tree holds compressed lie as the readers want them; a path is in answers
SAID_APART = ("provenance", "version", "hash", "digest", "calibration_file")  # what a record says of itself, not of its answer
SCALARS = ("latency_s", "latency_interval_s", "throughput_per_s", "power_w", "power_interval_w", "energy_j", "energy_interval_j",
           "power_peak_w", "memory_bytes", "max_batch", "flop", "dram_bytes", "device_s", "host_wait_s")  # fmt: skip
CORPUS = "rows"
NOTHING = 1e-12  # s, J, ...: smaller is the rest of a difference of equal numbers, which each processor rounds in its own way


def computed(workers: int) -> Values:
    """All values of the tree that is imported; `workers` processes share them where the system can fork."""
    tasks = [*_corpus_tasks(), *_estimate_tasks(), *_command_tasks()]
    parts: Iterable[Values]
    if workers > 1 and "fork" in multiprocessing.get_all_start_methods():
        _LATER.extend(tasks)
        gc.freeze()  # the rows that all workers share are looked through by no collection
        with multiprocessing.get_context("fork").Pool(workers) as pool:
            parts = pool.map(_run, range(len(tasks)), chunksize=1)
        _LATER.clear()
    else:
        parts = [task() for task in tasks]
    found: Values = defaultdict(dict)
    for part in parts:
        for group, values in part.items():
            for key, own in values.items():
                counts = group.startswith("skipped") and key in found[group]
                found[group][key] = [found[group][key][0] + own[0]] if counts else own  # type: ignore[operator]
    return dict(sorted(found.items()))


Task = Callable[[], Values]
_LATER: list[Task] = []  # what forked workers find by number, since a task cannot be sent to them


def _run(number: int) -> Values:
    return _LATER[number]()


# -------------------------------------------------------------------------------------------------------------- the corpus


def _corpus_tasks() -> Iterator[Task]:
    from archsim.evidence.columns import with_ids
    from archsim.evidence.family import serving_files
    from archsim.evidence.readers import read_files

    for files, at_once in ((serving_files(), 100), ((), 1500)):  # first the rows that take longest, each a run of an engine
        cases, skips = read_files(files)
        rows = sorted(with_ids(cases), key=lambda case: (case.hardware, case.stack.id))  # those that are lowered together
        yield from (_rows_task(rows[begin : begin + at_once]) for begin in range(0, len(rows), at_once))
        unread = Counter((skip.fields.get("source", ""), skip.reason) for skip in skips)
        yield lambda unread=unread: _skipped(unread)


def _rows_task(cases: Sequence[Any]) -> Task:
    return lambda: rows_of(cases)


def rows_of(cases: Sequence[Any]) -> Values:
    """Predictions of published rows by source, device and stack."""
    from archsim.calibration.constants import default
    from archsim.validation.evaluation import ValidationSettings, validate

    found: Values = defaultdict(dict)
    v = validate(cases, [], ValidationSettings(calibration=default(), baselines=()))
    for case, error, predicted, low, high in zip(v.cases, v.error, v.predicted, v.low, v.high, strict=True):
        group = f"{CORPUS} {case.source} | {case.hardware} | {case.stack.id}"
        found[group][case.fields["id"]] = [float(error), float(predicted), float(low), float(high)]
    unpredicted = Counter((skip.fields.get("source", ""), skip.reason) for skip in v.skips)
    return {**found, **_skipped(unpredicted)}


def _skipped(counts: Mapping[tuple[str, str], int]) -> Values:
    found: Values = defaultdict(dict)
    for (source, reason), n in counts.items():
        found[f"skipped {source}"][reason] = [float(n)]
    return found


# ------------------------------------------------------------------------------------- every device, network and stack


def _estimate_tasks() -> Iterator[Task]:
    from archsim.detect import catalog as devices
    from archsim.stack import catalog as stacks
    from archsim.trace.file import names as networks

    asked: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for i, name in enumerate(devices.names()):
        spec = devices.find(name)
        net = ("alexnet", "resnet_50", "mobilenet_v2")[i % 3]
        asked[f"devices {spec.kind} {spec.identity.architecture}"].append({"net": net, "hw": name, "batch": (1, 16)[i % 2]})
    for i, name in enumerate(networks()):
        hw, batch = (("gtx_1080", 8), ("i7_6700k", 2), ("a100_sxm4_40gb", 4))[i % 3]
        asked[f"networks {name.partition('_')[0]}"].append({"net": name, "hw": hw, "batch": batch})
    hosts = {kind: [find(kind, name, devices) for name in names] for kind, names in RUNS_ON.items()}
    for name in stacks.names():
        stack = stacks.find(name)
        able = [spec.identity.id for spec in hosts.get(stack.kind, hosts["gpu"])
                if (not stack.architectures or spec.identity.kernels_of in stack.architectures)
                and (not stack.vendor or spec.identity.vendor == stack.vendor)]  # fmt: skip
        net = "bert_base" if stack.serving.step_clocks > 0 else "resnet_50"
        asked[f"stacks {stack.framework}"] += [{"net": net, "hw": hw, "stack": name, "batch": 4} for hw in able[:2]]
    for group, requests in asked.items():
        yield lambda group=group, requests=requests: _estimated(group, requests)


RUNS_ON = {
    "gpu": ("gtx_1080", "tesla_k40", "a100_sxm4_40gb", "h100_sxm5_80gb", "gtx_980", "rtx_4090", "mi100", "apple_m1_gpu"),
    "cpu": ("i7_6700k", "cortex_a72_rpi4", "xeon_platinum_8380", "apple_m1"), "tpu": ("tpu_v2", "tpu_v4"),
}  # fmt: skip


def find(kind: str, name: str, catalog: Any) -> Any:
    """A device on which stacks of a kind are tried."""
    spec = catalog.find(name)
    assert spec.kind == kind, f"{name} is no {kind}"
    return spec


def _estimated(group: str, requests: Sequence[Mapping[str, Any]]) -> Values:
    from archsim.api import estimate
    from archsim.base.errors import ArchsimError

    found: dict[str, list[Value]] = {}
    for request in requests:
        key = " ".join(str(word) for word in request.values())
        try:
            answer = estimate(**request)
        except (ArchsimError, ValueError) as error:
            found[key] = [math.nan, str(error).splitlines()[0]]
        else:
            found[key] = [math.nan, *(value for name in SCALARS for _, value in _leaves(getattr(answer, name), name))]
    return {group: found}


# ----------------------------------------------------------------------------------------------------------- commands


def _command_tasks() -> Iterator[Task]:
    for line in command_lines():
        yield lambda line=line: {f"command {line}": answered(line)}


def command_lines() -> list[str]:
    """The lines of the file that are no remarks."""
    lines = (line.strip() for line in COMMANDS.read_text("utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def answered(line: str) -> dict[str, list[Value]]:
    """Every number and word of the JSON that a command prints, by its place; of one that fails, its exit code and first words."""
    from archsim.cli.main import main

    out, err, before, code = io.StringIO(), io.StringIO(), sys.argv, 0
    sys.argv = ["archsim", *map(unpacked, shlex.split(line)), "--json"]
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main()
    except SystemExit as leaving:
        code = int(leaving.code or 0)
    finally:
        sys.argv = before
    if code not in (0, 1) or not out.getvalue():
        return {"exit": [float(code), (err.getvalue().splitlines() or [""])[0]]}
    return {place: [math.nan, value] for place, value in _leaves(json.loads(out.getvalue()), "")}


def unpacked(word: str) -> str:
    """A word of a command line; the path of a model that the tree holds compressed becomes that of its content."""
    if not word.startswith("tests/trace/exports/"):
        return word
    place = UNPACKED / Path(word).name.removesuffix(".gz")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(gzip.decompress(Path(word).read_bytes()))
    return str(place)


def _leaves(value: Any, place: str) -> Iterator[tuple[str, Value]]:
    match value:
        case Mapping():
            for name, inner in value.items():
                if not any(word in name for word in SAID_APART):
                    yield from _leaves(inner, f"{place}.{name}" if place else str(name))
        case list() | tuple():
            for i, inner in enumerate(value):
                yield from _leaves(inner, f"{place}[{i}]")
        case bool() | None:
            yield place, str(value)
        case str():
            yield place, value
        case _:
            yield place, float(value) if abs(value) >= NOTHING else 0.0
