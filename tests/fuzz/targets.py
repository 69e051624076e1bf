"""What is fuzzed: for each target how an input is made, and what is done with it."""

from __future__ import annotations

import contextlib
import gzip
import json
import math
import shutil
import tempfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

from archsim.base.errors import ArchsimError
from archsim.base.files import data_folder
from archsim.ui.server import WhatIfApplication
from tests.shipped import cpu

from . import commands, models, mutate, networks
from .check import Broken, all_finite, json_of

TINY = """{"schema": "archsim-trace/1", "name": "tiny", "inputs": {"data": ["N", 3, 32, 32]}, "dtype": "fp32", "source": ""}
{"op": "conv2d", "name": "conv1", "in": ["data"], "out": ["N", 16, 30, 30], "kernel": [3, 3]}
{"op": "batch_norm", "name": "bn1", "in": ["conv1"], "out": ["N", 16, 30, 30]}
{"op": "relu", "name": "relu1", "in": ["bn1"], "out": ["N", 16, 30, 30]}
{"op": "max_pool", "name": "pool1", "in": ["relu1"], "out": ["N", 16, 15, 15], "kernel": [2, 2], "stride": [2, 2]}
{"op": "reshape", "name": "flat", "in": ["pool1"], "out": ["N", 3600]}
{"op": "linear", "name": "fc", "in": ["flat"], "out": ["N", 10]}
{"op": "softmax", "name": "prob", "in": ["fc"], "out": ["N", 10]}
"""
HEAD = "source,network,hardware,stack,task,batch,precision,threads,devices,clock_mhz,metric,value,split"
ROWS = (
    "me,alexnet,gtx_1080,caffe-cudnn5.1,inference,16,fp32,,1,,latency_s,0.01,calibrate",
    "me,resnet_50,i7_6700k,onnxruntime-cpu,inference,1,fp32,4,1,,throughput_per_s,20,test",
    "me,vgg_16,tesla_k40,torch7-cudnn4,forward_backward,16,fp32,,1,745,latency_s,0.5,calibrate",
    "me,alexnet,tegra_x1,caffe-cudnn4,inference,128,fp16,,1,690,power_w,5.1,test",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A kind of input.

    make: an input from a source of randomness
    run: what is done with it; raises nothing but what is meant for the user
    sound: an input that is all right, and reaches the end of `run`
    weight: its share of the cases
    """

    name: str
    make: Callable[[Random], bytes]
    run: Callable[[bytes, Path], None]
    sound: Callable[[], bytes]
    weight: float


@cache
def shipped(folder: str, suffix: str, most: int = 60_000) -> tuple[str, ...]:
    """The texts of shipped files that are not long."""
    found = {place.name: place for place in data_folder(folder).iterdir() if place.name.endswith(suffix)}
    texts = (found[name].read_text(encoding="utf-8-sig") for name in sorted(found))
    return tuple(text for text in texts if len(text) <= most)


def _coded(text: str, random: Random) -> bytes:
    if random.random() < 0.03:
        return text.encode("utf-16", "surrogatepass")
    return text.encode("utf-8", "surrogatepass")


def _from(texts: Callable[[], Sequence[str]], change: mutate.Text = mutate.text_of) -> Callable[[Random], bytes]:
    def make(random: Random) -> bytes:
        text = random.choice(texts())
        if random.random() < 0.06:
            return mutate.bytes_of(text.encode(), random)
        return _coded(change(text, random), random)

    return make


def _file(data: bytes, folder: Path, name: str) -> str:
    place = folder / name
    place.write_bytes(data)
    return str(place)


def estimate_of(net: str, hw: str, **words: Any) -> None:
    """Estimate, and look at every number and at the text of the answer."""
    from archsim.answers.estimate import csv, record, sections
    from archsim.estimation.estimate import estimate
    from archsim.render.text import text_of

    result = estimate(net, hw, **words)
    json_of(json.dumps(record(result)))
    csv(result)
    text_of(sections(result), 2)


def forget() -> None:
    """Empty the caches that hold files of earlier cases by their names."""
    from archsim.estimation import network, request
    from archsim.evidence import row
    from archsim.stack import catalog
    from archsim.trace import task

    held = (network.bound, request._digest, row.device, row.network)
    for function in (catalog.find, catalog.composition, task.trace_held, *held):
        clear = getattr(function, "cache_clear", None)
        if clear is not None:
            clear()


def run_spec(data: bytes, folder: Path) -> None:
    """A device file, and a small network on it."""
    path, net = _file(data, folder, "d.toml"), _file(TINY.encode(), folder, "n.jsonl")
    from archsim.detect.catalog import find

    find(path)
    estimate_of(net, path, batch=2)


def run_spec_deep(data: bytes, folder: Path) -> None:
    """A device file, and what else is asked of one."""
    from archsim.answers.device import sections
    from archsim.detect.catalog import find
    from archsim.estimation.estimate import estimate_of as of
    from archsim.estimation.request import make_request
    from archsim.render.text import text_of
    from archsim.study.sensitivity import sensitivity

    path, net = _file(data, folder, "d.toml"), _file(TINY.encode(), folder, "n.jsonl")
    spec = find(path)
    text_of(sections(spec), level=2)
    request = make_request(net, path, task="training_step", batch=4)
    all_finite(of(request).latency_s)
    sensitivity(request, ["memory.bandwidth"], 0.01, 0.25)


def run_trace(data: bytes, folder: Path) -> None:
    """A network file, and estimates of it on a GPU and on a CPU."""
    from archsim.trace.file import dumps, load, loads

    path = _file(data, folder, "n.jsonl")
    trace = load(path)
    if loads(dumps(trace)) != trace:
        raise Broken("what is written is not what was read")
    forget()
    for shift in (0, 8):
        estimate_of(path, **_asked(zlib.crc32(data) >> shift))


def run_onnx(data: bytes, folder: Path) -> None:
    """An ONNX model, and an estimate of it."""
    _run_model(_file(data, folder, "m.onnx"), data)


def run_prototxt(data: bytes, folder: Path) -> None:
    """A Caffe network, and an estimate of it."""
    _run_model(_file(data, folder, "n.prototxt"), data)


def run_chakra(data: bytes, folder: Path) -> None:
    """An execution trace in either form, and an estimate of it."""
    _run_model(_file(data, folder, "t.json" if data[:1] == b"{" else "t.et"), data)


def _run_model(path: str, data: bytes) -> None:
    from archsim.trace.file import dumps, load, loads

    trace = load(path)
    again = loads(dumps(trace))
    if (again.ops, again.inputs) != (trace.ops, trace.inputs):
        raise Broken("what is written is not what was read")
    forget()
    estimate_of(path, **_asked(zlib.crc32(data)))


def run_profile(data: bytes, folder: Path) -> None:
    """A profile beside the prediction of its run; the causes of the gap add up to it."""
    from archsim.study.profiled import compare_profile

    found = compare_profile(_file(data, folder, "p.json"), "gtx_1080")
    gap = math.fsum(cause.time_s for cause in found.gap)
    if not math.isclose(gap, found.measured_s - found.predicted_s, rel_tol=1e-6, abs_tol=1e-9 * max(1.0, found.measured_s)):
        raise Broken("the causes of the gap do not add up to it")


def run_config(data: bytes, folder: Path) -> None:
    """A model's configuration, and an estimate of its network on a GPU."""
    from archsim.trace.file import load

    path = _file(data, folder, "config.json")
    trace = load(path)
    if len(trace.ops) < 2000:
        estimate_of(path, **_asked(zlib.crc32(data)))


@cache
def _devices() -> tuple[str, ...]:
    from archsim.device.catalog import names

    return tuple(names())


def _asked(number: int) -> dict[str, Any]:
    """A device, a task, a precision and a fidelity, chosen by a number."""
    hw = _devices()[number % len(_devices())]
    gpu = find_kind(hw) == "gpu"
    words: dict[str, Any] = {"hw": hw, "task": ("inference", "inference", "training_step", "forward_backward")[number // 7 % 4]}
    if number % 5 == 0:
        words["fidelity"] = ("roofline", "event")[number // 5 % 2] if gpu else "roofline"
    if number % 3 == 0:
        words["precision"] = ("fp16", "fp32", "int8")[number // 11 % 3]
    return words


def find_kind(hw: str) -> str:
    """The kind of a shipped device."""
    from archsim.device.catalog import find

    return find(hw).kind


def run_stack(data: bytes, folder: Path) -> None:
    """A stack file, and a small network with it."""
    from archsim.stack.catalog import find

    path, net = _file(data, folder, "s.toml"), _file(TINY.encode(), folder, "n.jsonl")
    forget()
    estimate_of(net, "i7_6700k" if find(path).kind == "cpu" else "gtx_1080", stack=path)


def run_calibration(data: bytes, folder: Path) -> None:
    """Constants, and a small network with them."""
    from archsim.calibration.constants import dump, load

    path, net = _file(data, folder, "c.toml"), _file(TINY.encode(), folder, "n.jsonl")
    found = load(path)
    dump(found)
    estimate_of(net, "gtx_1080", calibration=found)


def run_system(data: bytes, folder: Path) -> None:
    """A computer at the wall, and a card and a processor in it."""
    from archsim.detect.catalog import find
    from archsim.estimation.wall import wall_power
    from archsim.node.system import load

    system = load(Path(_file(data, folder, "system.toml")))
    host = cpu("i7_6700k")
    for device in (find("gtx_1080").device, host):
        found = wall_power(100.0, device, host, system, system.devices)
        all_finite([found.computer_w, found.share_w, found.load, *found.parts_w.values()])


def run_node(data: bytes, folder: Path) -> None:
    """A node, and an all-reduce in it."""
    from dataclasses import asdict

    from archsim.node.spec import load
    from archsim.simulate.allreduce import simulate_all_reduce

    spec = load(Path(_file(data, folder, "node.toml")))
    all_finite([asdict(row) for row in simulate_all_reduce(spec, [2], [1e6])])


def run_measurements(data: bytes, folder: Path) -> None:
    """Rows, their predictions, and their check for the corpus."""
    from archsim.answers.validation import csv, record, sections
    from archsim.calibration.constants import default
    from archsim.evidence.readers import read_files
    from archsim.render.html import page
    from archsim.render.text import text_of
    from archsim.validation.check import check_file
    from archsim.validation.evaluation import ValidationSettings, validate

    path = _file(data, folder, "m.csv")
    with contextlib.suppress(ArchsimError):
        check_file(path)
    cases, skips = read_files([path])
    settings = ValidationSettings(
        calibration=default(), fidelity="analytical", without=frozenset(), baselines=("roofline",), by=("network",)
    )
    result = validate(cases[:4], skips, settings, lambda text: None)
    json_of(json.dumps(record(result)))
    csv(result)
    text_of(sections(result), 2)
    page(sections(result))


def run_study(data: bytes, folder: Path) -> None:
    """A study file, read only: its parts are what commands do."""
    from archsim.study.file import load

    load(_file(data, folder, "study.toml"))


def run_prices(data: bytes, folder: Path) -> None:
    """A price list."""
    from archsim.detect.catalog import find
    from archsim.study.price import read_prices

    read_prices(_file(data, folder, "prices.csv"), lambda name: find(name).identity.id)


def run_kernels(data: bytes, folder: Path) -> None:
    """Tiles of a library."""
    from archsim.stack.menu import Menu, filled

    filled({"gemm": Menu(kernels=(str(_file(data, folder, "tiles.csv")),))})


def run_arrivals(data: bytes, folder: Path) -> None:
    """Recorded arrivals."""
    from archsim.simulate.requests import recorded_arrivals

    all_finite(recorded_arrivals(_file(data, folder, "a.csv")).tolist())


def run_addresses(data: bytes, folder: Path) -> None:
    """An address trace."""
    from archsim.cache.trace_file import read

    for instructions in (False, True):
        for _ in read(_file(data, folder, "t.gz" if data[:2] == b"\x1f\x8b" else "t.din"), instructions):
            pass


@cache
def _sweep() -> tuple[bytes, tuple[str, ...]]:
    """A small sweep's file, half done, and the command that would finish it."""
    folder = Path(tempfile.mkdtemp(prefix="archsim-fuzz-"))
    try:
        words = ("sweep", "--net", "alexnet", "--hw", "gtx_1080", "--vary", "sm.count=8,16,24", "--out")
        found = commands.run((*words, str(folder / "s.sqlite")))
        if found.code:
            raise RuntimeError(found.err)
        return (folder / "s.sqlite").read_bytes(), words
    finally:
        shutil.rmtree(folder)


@cache
def _memo() -> tuple[bytes, dict[bytes, float]]:
    """A file of simulated programs, and what it holds."""
    from archsim.estimation.memo import Memo

    folder = Path(tempfile.mkdtemp(prefix="archsim-fuzz-"))
    try:
        made = Memo(folder / "memo")
        made.update({str(i).encode(): 12.5 + i for i in range(200)})
        made.close()
        return (folder / "memo").read_bytes(), dict(made)
    finally:
        shutil.rmtree(folder)


HOSTILE_SQL: list[str] = mutate.VALUES["sql"]


def _damaged(sound: Callable[[], bytes], random: Random) -> bytes:
    """An SQLite file with changed bytes, or changed by SQL."""
    import sqlite3

    data = sound()
    if random.random() < 0.5:
        return mutate.bytes_of(data, random)
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(data)
        for text in random.sample(HOSTILE_SQL, random.choice((1, 1, 2, 3))):
            with contextlib.suppress(sqlite3.Error):
                connection.execute(text)
        connection.commit()
        return connection.serialize()


def run_memo(data: bytes, folder: Path) -> None:
    """What a process takes from a file in the cache folder, and what the next one does."""
    from archsim.estimation.memo import Memo

    path, (_, sound) = Path(_file(data, folder, "memo")), _memo()
    for _ in range(2):
        found = Memo(path)
        if not {key: found[key] for key in sound if key in found}.items() <= sound.items():
            raise Broken("another number than was simulated")
        found.close()


REQUESTS: list[str] = mutate.VALUES["requests"]


def make_request(random: Random) -> bytes:
    """A request to the page: its method, its path with the query, its headers, and what is sent with it."""
    words = random.choice(REQUESTS).split(" ")
    return json.dumps([mutate.text_of(word, random) if random.random() < 0.4 else word for word in words]).encode()


def run_request(data: bytes, folder: Path) -> None:
    """A request of the browser that opened the page; no answer may be a defect."""
    from ..ui.asked import get, send

    method, path, length, *body = (*json.loads(data), "", "", "")
    path, _, query = path.partition("?")
    app = WhatIfApplication(8050)
    with contextlib.closing(app.uploads):
        content = "".join(body).encode("utf-8", "surrogatepass")
        if method == "POST" and length:
            status, _, text = send(app, query, content, content_length=length)
        else:
            status, _, text = get(path, query, app, method, content)
        if status >= 500:
            raise Broken(text)


def run_shares(data: bytes, folder: Path) -> None:
    """The shares of units, and the power of each row."""
    from archsim.estimation.power import powers_of_file

    all_finite([one.power_w for one in powers_of_file(_file(data, folder, "s.csv"), "titan_xp")])


def run_store(data: bytes, folder: Path) -> None:
    """A sweep that goes on in a file of a stranger."""
    path = _file(data, folder, "s.sqlite")
    commands.checked((*_sweep()[1], path, "--resume"))


TEXTS: list[str] = mutate.VALUES["texts"]


def plain(read: Callable[..., Any], *words: str) -> Any:
    """What a reader gives whose callers make errors of their own from its ValueError."""
    try:
        return read(*words)
    except ValueError as error:
        raise ArchsimError(str(error)) from None


def run_words(data: bytes, folder: Path) -> None:
    """The texts of options, in three of the places that read one."""
    import click

    from archsim.base.units import COUNT, UNITS, parse
    from archsim.base.values import factor, parts, quantity, table, whole
    from archsim.cli.vocabulary import holds, pairs
    from archsim.measure.run import whole_numbers
    from archsim.study.axis import axis_of, coupling_of
    from archsim.study.batches import batches_of
    from archsim.study.objective import conditions, in_better_direction, objectives, target_of
    from archsim.trace.dims import factors

    text, units = data.decode("utf-8", "replace"), tuple(UNITS)
    readers: tuple[Callable[[], Any], ...] = (
        lambda: plain(parse, text, units[zlib.crc32(data) % len(units)]), lambda: plain(parse, text, COUNT),
        lambda: plain(whole, text), lambda: plain(factor, text), lambda: plain(table, text, "a=b"), lambda: plain(factors, text),
        lambda: holds(text, {"latency_s": 1.0, "power_w": 2.0}), lambda: pairs([text], ["max", "wait", "disk", "decode"], "--x"),
        lambda: plain(quantity, text, "s"), lambda: parts(text), lambda: axis_of(text, "gpu"), lambda: axis_of(text, "cpu"),
        lambda: batches_of(text), lambda: coupling_of(text, ("sm.count", "clock")), lambda: conditions(text, {"sm.count": COUNT}),
        lambda: target_of(text), lambda: objectives([text], []), lambda: in_better_direction([text]),
        lambda: whole_numbers(text, "--x"),
    )  # fmt: skip
    first = zlib.crc32(data)
    for at in (first % len(readers), (first >> 8) % len(readers), (first >> 16) % len(readers)):
        try:
            found = readers[at]()
        except (ArchsimError, click.ClickException):
            continue
        if isinstance(found, float):
            all_finite(found)


def _gzipped(make: Callable[[Random], bytes]) -> Callable[[Random], bytes]:
    def maker(random: Random) -> bytes:
        data = make(random)
        if random.random() < 0.3:
            return data
        data = gzip.compress(data * (random.choice((1, 1, 1, 3000)) if len(data) < 4000 else 1), 1)
        return mutate.bytes_of(data, random) if random.random() < 0.7 else data

    return maker


LACKEY, DIN = "I  04001000,3\n L 1ffeffe7d8,8\n S 1ffeffe7d0,8\n M 0421c7cc,4\n", "0 1ffeffe7d8\n1 1ffeffe7d0\n2 4001000\n"
ADDRESSES = (LACKEY * 6, DIN * 8)
SHARES = ("name,fp32,dram,clock,power\na,0.5,0.1,1.4 GHz,180 W\nb,0.2,0.6,,\n", "dram\n0.3\n")
ARRIVALS = ("arrival_s\n" + "".join(f"{i * 0.1:.2f}\n" for i in range(20)),)
PRICES = ("device,price,per_hour,source\ngtx_1080,450USD,,shop\ntesla_v100_sxm2,,2.5USD/h,cloud\ni7_6700k,300USD,,shop\n",)


@cache
def _traces() -> tuple[str, ...]:
    return (TINY, TINY, TINY, *shipped("traces/nets", ".jsonl", 9000))


@cache
def _stacks() -> tuple[str, ...]:
    from archsim.stack.catalog import names

    heads = [f'schema = 1\nid = "mine"\nlike = "{name}"\n' for name in names()]
    return (
        *heads, *(f'{head}{line}\n' for head in heads[:4] for line in (
            'inputs = "host"', "graphs = true", 'waits = true', 'reserved = "300 MB"', "[parts]\nlibrary = \"cudnn 5.1\"",
            "[attention]\nfused = true", "[dispatch]\ncall = 0.5", '[sources]\n"*" = "me"', 'optimiser = "adam"')))  # fmt: skip


def _studies() -> tuple[str, ...]:
    folder = Path(str(data_folder("reports/calibration"))).parent / "studies"
    return tuple(path.read_text("utf-8") for path in sorted(folder.glob("*/study.toml"))) or ("schema = 1\n",)


def _tables() -> tuple[str, ...]:
    networks = "\n".join([HEAD, *ROWS]) + "\n"
    published = list(shipped("reports/published", ".csv", 1 << 24))
    return (networks, networks, *(("\n".join(text.split("\n")[:6]) + "\n") for text in published))


def _constants() -> tuple[str, ...]:
    return shipped("reports/calibration", ".toml", 1 << 20)


def _spec(name: str) -> bytes:
    return next(text for text in shipped("hwspecs", ".toml") if f'id = "{name}"' in text).encode()


TARGETS = {target.name: target for target in (
    Target(name="words", make=_from(lambda: TEXTS), run=run_words, weight=200,
           sound=lambda: TEXTS[0].encode()),
    Target(name="trace", make=_from(_traces, mutate.json_lines), run=run_trace, weight=8,
           sound=TINY.encode),
    Target(name="network", make=lambda random: networks.network(random).encode("utf-8", "surrogatepass"), run=run_trace,
           weight=16, sound=TINY.encode),
    Target(name="onnx", make=models.onnx_bytes, run=run_onnx, weight=8, sound=lambda: models.seeds()[0]),
    Target(name="prototxt", make=_from(lambda: (models.CAFFE,)), run=run_prototxt, weight=3, sound=models.CAFFE.encode),
    Target(name="chakra", make=models.chakra_bytes, run=run_chakra, weight=6, sound=lambda: models.chakra_traces()[0]),
    Target(name="profile", make=_from(models.profiles), run=run_profile, weight=6, sound=lambda: models.profiles()[0].encode()),
    Target(name="config", make=_from(lambda: shipped("traces/models", ".json")), run=run_config, weight=6,
           sound=lambda: next(text for text in shipped("traces/models", ".json") if '"id": "gpt2_small"' in text).encode()),
    Target(name="spec", make=_from(lambda: shipped("hwspecs", ".toml")), run=run_spec, weight=8,
           sound=lambda: _spec("gtx_1080")),
    Target(name="spec_deep", make=_from(lambda: shipped("hwspecs", ".toml")), run=run_spec_deep, weight=1,
           sound=lambda: _spec("gtx_1080")),
    Target(name="stack", make=_from(_stacks), run=run_stack, weight=5,
           sound=lambda: _stacks()[0].encode()),
    Target(name="kernels", make=_from(lambda: shipped("traces/kernels", ".csv")), run=run_kernels, weight=2,
           sound=lambda: shipped("traces/kernels", ".csv")[0].encode()),
    Target(name="calibration", make=_from(_constants), run=run_calibration, weight=2,
           sound=lambda: _constants()[0].encode()),
    Target(name="system", make=_from(lambda: shipped("hwspecs/systems", ".toml")), run=run_system, weight=2,
           sound=lambda: shipped("hwspecs/systems", ".toml")[0].encode()),
    Target(name="node", make=_from(lambda: shipped("hwspecs/hosts", ".toml")), run=run_node, weight=3,
           sound=lambda: shipped("hwspecs/hosts", ".toml")[0].encode()),
    Target(name="measurements", make=_from(_tables), run=run_measurements, weight=5,
           sound=lambda: _tables()[0].encode()),
    Target(name="study", make=_from(_studies), run=run_study, weight=3,
           sound=lambda: _studies()[0].encode()),
    Target(name="prices", make=_from(lambda: PRICES), run=run_prices, weight=2,
           sound=lambda: PRICES[0].encode()),
    Target(name="arrivals", make=_from(lambda: ARRIVALS), run=run_arrivals, weight=2,
           sound=lambda: ARRIVALS[0].encode()),
    Target(name="addresses", make=_gzipped(_from(lambda: ADDRESSES)), run=run_addresses, weight=3,
           sound=lambda: ADDRESSES[0].encode()),
    Target(name="store", make=partial(_damaged, lambda: _sweep()[0]), run=run_store, weight=1,
           sound=lambda: _sweep()[0]),
    Target(name="memo", make=partial(_damaged, lambda: _memo()[0]), run=run_memo, weight=2,
           sound=lambda: _memo()[0]),
    Target(name="request", make=make_request, run=run_request, weight=2,
           sound=lambda: json.dumps(REQUESTS[0].split(" ")).encode()),
    Target(name="shares", make=_from(lambda: SHARES), run=run_shares, weight=2,
           sound=lambda: SHARES[0].encode()),
    Target(name="command", make=commands.make, run=commands.run_case, weight=4,
           sound=lambda: b'["estimate", "--net", "n.jsonl", "--hw", "d.toml", "--json"]'),
)}  # fmt: skip
