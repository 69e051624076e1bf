"""`ARGUMENTS`: one row for each argument of an estimate, from which all that takes one follows.

Options of commands, words of Python functions, knobs of studies, settings that `tune` tries, changes of a what-if, completion and
fields of the page have their names, units, ranges, defaults and help from here. A new argument is its row and its use.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from archsim.base.errors import ArgumentError, nearest
from archsim.base.files import is_path
from archsim.base.units import COUNT, show
from archsim.base.values import factor, name, names, pairs, quantity, read, share, table, whole, written, yes_or_no

LARGEST_BATCH = 1 << 20
MOST_THREADS = 1 << 16  # of a stack on one computer
MOST_STREAMS = 128  # grids that run at once on any NVIDIA GPU (CUDA programming guide, compute capabilities)
MOST_POWER = 1e5  # W; no board or package takes as much
CLOCKS = (1e6, 1e11)  # Hz, that can be asked for
EVERY = ("gpu", "cpu", "tpu")


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument.

    name: of `make_request`; word: what users call it, where that is another
    kind: of its value, a row of `KINDS`
    doc: the help of its option; `{names}` in it are the words that it takes; title: what it is, in a noun
    unit, low, high: base unit and range of a number
    default: where nobody gives it; usual: what then holds, in words, where help should say so
    choices: all words that it takes; names: the catalog that its words are of, which may grow
    metavar: what stands for its value in help; example: a pair KEY=VALUE
    group: which commands take it: `place` and `run` most, `wall`, `budget`, `buyer` and `served` some; without one no user does
    spelt: other spellings that are taken; aliases: names elsewhere, which are answered with the one here
    devices: kinds of device that it belongs to
    several: whether `compare` takes more than one
    varies: whether a study varies it; kernels: whether its values run other kernels; tuned: whether `tune` tries it
    changed: whether a what-if changes it
    page: how the page of what-ifs shows it: a `field` holds before and after, a `slider` changes; estimated: the attribute of an
        estimate that says what was used
    """

    name: str
    kind: str
    doc: str = ""
    title: str = ""
    word: str = ""
    unit: str = COUNT
    low: float = 0.0
    high: float = math.inf
    default: Any = None
    usual: str = ""
    choices: tuple[str, ...] = ()
    names: str = ""
    metavar: str = ""
    example: str = ""
    group: str = "run"
    spelt: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    devices: tuple[str, ...] = EVERY
    several: bool = False
    varies: bool = False
    kernels: bool = False
    tuned: bool = False
    changed: bool = False
    page: str = ""
    estimated: str = ""

    @property
    def called(self) -> str:
        """What users call it in Python."""
        return self.word or self.name

    @property
    def option(self) -> str:
        """What they call it on a command line."""
        return f"--{self.called.replace('_', '-')}"

    @property
    def numeric(self) -> bool:
        """Whether its value is one number."""
        return self.kind in ("whole", "quantity")

    @property
    def annotation(self) -> str:
        """The types that it takes in Python."""
        return KINDS[self.kind][1] + ("" if self.default is not None else " | None")

    def read(self, value: object) -> Any:
        """The value that a model takes. Raises ValueError with what is wrong, without the argument's name."""
        if self.several and isinstance(value, str) and "," in value and not is_path(value):
            raise ValueError(f"{value!r} is more than one; `archsim compare {self.option} {value}` sets them side by side")
        found = KINDS[self.kind][0](self, value)
        if self.choices and found not in self.choices:
            raise ValueError(f"{value!r} is not one of {', '.join(self.choices)}")
        return found

    def shown(self, value: Any) -> str:
        """A value for people."""
        return show(value, self.unit) if self.kind == "quantity" else str(value)

    def check(self, value: float) -> None:
        """Raise ArgumentError for a number outside the range [base unit]."""
        if not self.low <= value <= self.high:
            unit = "" if self.unit == COUNT else f" {self.unit}"
            low, high = (f"{end:.7g}" if self.unit == COUNT else show(end, self.unit) for end in (self.low, self.high))
            raise ArgumentError(f"{self.name.replace('_', ' ')} {value:.10g}{unit} is not between {low} and {high}")


# kind of value -> what reads it, and the types that it takes in Python
KINDS: dict[str, tuple[Callable[[Argument, object], Any], str]] = {
    "name": (lambda row, value: name(value), "str | PathLike"),
    "file": (lambda row, value: name(value), "str | PathLike"),
    "constants": (lambda row, value: name(value), "str | PathLike | Calibration"),
    "list": (lambda row, value: ",".join(names(value)), "str | Iterable[str]"),
    "share": (lambda row, value: share(value), "float | str"),
    "whole": (lambda row, value: whole(value), "int | str"),
    "quantity": (lambda row, value: quantity(value, row.unit), "float | str"),
    "flag": (lambda row, value: yes_or_no(value), "bool"),
    "pairs": (lambda row, value: [(key, name(each)) for key, each in pairs(value, row.example)], "Mapping | Iterable[str]"),
    "values": (lambda row, value: _each(written, value, row), "Mapping | Iterable[str]"),
    "factors": (lambda row, value: _each(factor, value, row), "Mapping | Iterable[str]"),
    "sizes": (lambda row, value: _each(whole, value.split(",") if isinstance(value, str) else value, row),
              "Mapping | Iterable[str]"),
}  # fmt: skip


def _each(reader: Callable[[object], Any], value: object, row: Argument) -> dict[str, Any]:
    """The values of a table, each read; what is wrong with one names its key."""
    return {key: read(key, reader, each) for key, each in table(value, row.example).items()}


ARGUMENTS: dict[str, Argument] = {row.name: row for row in (
    Argument(name="net", kind="name", group="place", names="network", varies=True, kernels=True, several=True,
             aliases=("network", "model"),
             doc="A shipped network, or a path: trace file, ONNX, prototxt, config.json, Chakra, profile."),
    Argument(name="hw", kind="name", group="place", names="device", varies=True, kernels=True, several=True, changed=True,
             aliases=("hardware", "device", "gpu", "cpu", "spec", "base"),
             doc="A shipped device, an alias, or the path of a spec file."),
    Argument(name="batch", kind="whole", title="batch", low=1, high=LARGEST_BATCH, usual="1", several=True, varies=True,
             kernels=True, tuned=True, changed=True, page="field", aliases=("batch_size",), doc="Samples per run."),
    Argument(name="seq_len", kind="whole", title="tokens", low=1, metavar="TOKENS", varies=True, kernels=True, changed=True,
             page="field", aliases=("sequence_length",),
             doc="Tokens in a sequence, for networks that take any number; their usual number if not given."),
    Argument(name="bind", kind="sizes", title="other sizes", metavar="NAME=SIZE", example="batch=8", page="field",
             doc="Size of a symbol in the shapes of the network's file, by the name that it has there: batch=8."),
    Argument(name="strict", kind="flag", default=False,
             doc="Refuse a network with operators that are known by their memory traffic only, or left out."),
    Argument(name="precision", kind="name", title="precision", names="precision", varies=True, kernels=True, changed=True,
             page="field", aliases=("dtype",), estimated="precision",
             doc="{names}; if not given fp32, or tf32 where the stack takes it unless asked."),
    Argument(name="task", kind="name", title="task", names="task", default="inference", varies=True, kernels=True, changed=True,
             page="field", aliases=("mode",), doc="{names}."),
    Argument(name="optimiser", kind="name", title="optimiser", names="optimiser", varies=True, kernels=True, changed=True,
             page="field", spelt=("optimizer",),
             doc="What updates the weights: {names}; if not given adamw for networks with attention, else as published "
                 "benchmarks of the stack's framework."),
    Argument(name="stack", kind="name", title="software stack", names="stack", several=True, varies=True, kernels=True,
             changed=True, page="field", aliases=("framework", "library"), estimated="stack",
             doc="Software stack (`archsim list stacks`); the device's default if not given."),
    Argument(name="fusion", kind="name", title="fusion", choices=("none", "pointwise", "attention", "aggressive"),
             doc="Which ops share a kernel, in place of the stack's own rule: none; pointwise: chains of element-wise ops with a "
                 "sum over rows; attention: these, and attention as one kernel; aggressive: these, and what follows a product in "
                 "its kernel."),
    Argument(name="threads", kind="whole", title="threads", low=1, high=MOST_THREADS, devices=("cpu",), varies=True,
             tuned=True, changed=True, page="slider", estimated="threads",
             doc="CPU threads; the stack's default if not given."),
    Argument(name="devices", kind="whole", default=1, doc="Always 1; `archsim simulate train` and `serve` take several devices."),
    Argument(name="clock", kind="quantity", title="core clock", unit="Hz", low=CLOCKS[0], high=CLOCKS[1], metavar="CLOCK",
             varies=True, tuned=True, changed=True, page="slider", aliases=("freq", "frequency"), estimated="clock_hz",
             doc="Core clock, e.g. 690MHz; the spec's sustained clock if not given."),
    Argument(name="memory_clock", kind="quantity", title="memory clock", unit="Hz", low=CLOCKS[0], high=CLOCKS[1],
             metavar="CLOCK", devices=("gpu",), varies=True, tuned=True, changed=True, estimated="memory_clock_hz",
             doc="Memory clock of a GPU as drivers show it, half the data rate of a pin; the usual one if not given."),
    Argument(name="power_limit", kind="quantity", title="power limit", unit="W", high=MOST_POWER, metavar="POWER",
             devices=("gpu", "cpu"), varies=True, tuned=True, changed=True, page="slider", estimated="power_limit_w",
             doc="Power limit, e.g. 150W: each kernel runs at the highest clock at which it draws no more."),
    Argument(name="power_mode", kind="name", metavar="MODE", doc="Power mode of a Jetson module: maxn, maxp or maxq."),
    Argument(name="fidelity", kind="name", title="model", names="fidelity", default="analytical", page="field", doc="{names}."),
    Argument(name="traffic", kind="name", names="traffic", default="closed",
             doc="Bytes between the levels of caches: by closed forms, or simulated."),
    Argument(name="streams", kind="whole", low=1, high=MOST_STREAMS, default=1, devices=("gpu",),
             doc="CUDA streams on which ops may overlap; needs --fidelity event."),
    Argument(name="host_cpu", kind="name", title="host CPU", names="device", metavar="CPU", devices=("gpu", "tpu"), changed=True,
             estimated="host_cpu", doc="CPU that dispatches ops to a GPU; the usual one of its spec if not given."),
    Argument(name="inputs", kind="list", metavar="device|host|decoded[,KEY=VALUE]", devices=("gpu",),
             doc="Where a GPU finds each batch: in its own memory; in the host's, from which it is copied in the timed run; or "
                 "in stored samples that the host decodes (decoded,workers=8,stored=array: keys of the stack's reader). As the "
                 "stack says if not given."),
    Argument(name="graph", kind="flag", default=False, devices=("gpu",),
             doc="Replay the run as one CUDA graph, if the stack can."),
    Argument(name="cold", kind="flag", title="cold caches", default=False, devices=("gpu",), page="field",
             doc="A single run: no weights of a run before are in a GPU's L2. Else it is one of many equal ones."),
    Argument(name="search", kind="flag", default=False, devices=("gpu",),
             doc="Time the kernels of each convolution and take the fastest, as cudnn.benchmark; some need no layout copies."),
    Argument(name="settings", word="set", kind="values", metavar="KEY=VALUE", example="memory.bandwidth=51.2GB/s",
             doc="Change a value of the device: memory.bandwidth=51.2GB/s."),
    Argument(name="scales", word="scale", kind="factors", metavar="KEY=FACTOR", example="sm.count=2",
             doc="Multiply a value of the device: sm.count=2; `archsim show hw` prints the keys."),
    Argument(name="calibration", kind="constants", metavar="FILE",
             doc="Use the model constants of this file instead of the shipped ones."),
    Argument(name="input_gradient", kind="flag", group="", default=False),
    Argument(name="energy_budget", kind="quantity", group="budget", unit="J", metavar="ENERGY",
             doc="The most energy of a sample, e.g. 0.2J; of an estimate, the core clock is the highest at which it is no more."),
    Argument(name="boundary", kind="name", group="wall", choices=("device", "wall"), usual="device",
             doc="Where power is measured: at the board, module or package, or at the wall."),
    Argument(name="system", kind="name", group="wall", metavar="NAME[:DEVICES]",
             doc="The computer at the wall and the devices in it (`archsim list systems`)."),
    Argument(name="price", kind="pairs", group="buyer", metavar="DEVICE=PRICE", example="gtx_1080=450USD",
             doc="What a device costs: gtx_1080=450USD to buy, h100=2.5USD/h to rent. Its launch price if not given."),
    Argument(name="prices", kind="file", group="buyer", metavar="FILE",
             doc="A price list, CSV with the columns device, price, per_hour, source."),
    Argument(name="lifetime", kind="name", group="buyer", metavar="TIME",
             doc="Time after which a device that was bought is worth nothing; 3years if not given."),
    Argument(name="duty", kind="share", group="buyer", low=1e-3, high=1.0, metavar="SHARE",
             doc="Share of that time in which it works; 1 if not given."),
    Argument(name="electricity", kind="name", group="buyer", metavar="PRICE",
             doc="Price of electricity, like 0.25USD/kWh; not counted if not given."),
    Argument(name="pue", kind="quantity", group="buyer", low=1.0, high=10.0, metavar="FACTOR",
             doc="Energy of the room / energy of the devices, at least 1; 1 if not given."),
    Argument(name="samples", kind="whole", group="buyer", low=1, high=1e15, metavar="N",
             doc="Time, energy and cost of a data set of this size."),
    Argument(name="epochs", kind="whole", group="buyer", low=1, high=1e6, metavar="N",
             doc="The same for training this many times over the data set."),
)}  # fmt: skip

# those of a language model that an engine serves, beside the core clock and others of the device
SERVED: dict[str, Argument] = {row.name: row for row in (
    Argument(name="input", kind="whole", group="served", title="prompt tokens", metavar="TOKENS", usual="1024", page="field",
             doc="Tokens of each prompt."),
    Argument(name="output", kind="whole", group="served", title="answer tokens", metavar="TOKENS", usual="256", page="field",
             doc="Tokens of each answer."),
    Argument(name="batch", kind="whole", group="served", title="requests", default=1, high=LARGEST_BATCH, page="field",
             doc="Requests that arrive at once."),
    Argument(name="pp", kind="whole", group="served", default=1,
             doc="Groups of layers, one behind the other (pipeline parallel)."),
    Argument(name="tp", kind="whole", group="served", title="devices of a layer", default=1, page="field",
             doc="Devices that share each layer (tensor parallel)."),
    Argument(name="ep", kind="whole", group="served", default=1,
             doc="Devices over which experts are spread, with all-to-alls; as many as --tp."),
    Argument(name="engine", kind="name", group="served", title="engine", names="engine", page="field",
             doc="The engine: vllm, sglang, tensorrt-llm, llama.cpp, or with a version."),
    Argument(name="precision", kind="name", group="served", title="activations", names="activations", metavar="FORMAT",
             page="field", doc="Of activations: bf16 (the default) or fp16."),
    Argument(name="weights", kind="name", group="served", title="weights", names="weights", metavar="FORMAT", page="field",
             doc="Weights in bf16, fp16, fp32, fp8, int8, int4 (also awq, gptq), nvfp4, or those of GGUF files: q8_0, q6_k, "
                 "q5_k_m, q5_k_s, q5_0, q4_k_m, q4_k_s, q4_0, q3_k_l, q3_k_m, q3_k_s, q2_k."),
    Argument(name="kv", kind="name", group="served", title="keys and values", names="kv", metavar="FORMAT", page="field",
             doc="How keys and values are stored: bf16, fp16, fp8, int8."),
    Argument(name="node", kind="name", group="served", names="node",
             doc="The node that joins several devices; if not given, one that is sold with them."),
    Argument(name="graph", kind="flag", group="served",
             doc="Replay decode steps as CUDA graphs; as the engine does if not given."),
    Argument(name="speculative", kind="name", group="served", metavar="tokens=N,accept=SHARE",
             doc="Guess N tokens ahead, of which this share is taken, and check them in one step."),
    Argument(name="draft", kind="name", group="served", names="model",
             doc="The model that guesses; without one guesses take no time."),
)}  # fmt: skip


SERVED |= {name: ARGUMENTS[name] for name in ("clock", "power_limit", "host_cpu", "settings", "scales", "calibration")}
SEVERAL = ("batch", "stack", "inputs")  # of which `compare` takes several, or none
# what profiles say themselves
IN_PROFILES = ("batch", "seq_len", "bind", "task", "optimiser", "devices", "inputs", "streams", "graph", "cold", "search")
OF_POWER = ("clock", "memory_clock", "power_limit", "settings", "scales", "calibration")  # what a power without a network takes


def rows_of(*groups: str, without: Iterable[str] = ()) -> tuple[Argument, ...]:
    """The arguments of these groups, but for those named."""
    return tuple(row for row in ARGUMENTS.values() if row.group in groups and row.name not in without)


def rows_called(*names: str) -> tuple[Argument, ...]:
    """The arguments of these names."""
    return tuple(ARGUMENTS[name] for name in names)


def chosen(condition: Callable[[Argument], object], rows: Iterable[Argument] = ARGUMENTS.values()) -> tuple[str, ...]:
    """The names of the arguments for which something holds."""
    return tuple(row.name for row in rows if condition(row))


def called(word: str, rows: Iterable[Argument]) -> Argument:
    """The argument of that name, option or spelling. Raises ValueError with what it is called here, or the nearest names."""
    plain = word.removeprefix("--").replace("-", "_")
    listed = list(rows)
    for row in listed:
        if plain in (row.called, *row.spelt):
            return row
    near = [row.called for row in listed if plain in (row.name, *row.aliases)]
    near = near or nearest(plain, [row.called for row in listed]) or [row.called for row in listed]
    raise ValueError(f"no argument {word!r}; nearest: {', '.join(near)}")


def changes_of(given: object) -> dict[str, Any]:
    """The arguments that a what-if changes, by name, from a table or texts WHAT=VALUE. Raises ValueError.

    >>> changes_of({"clock": "600 MHz", "batch": 8}), changes_of(["stack=pytorch-2"])
    ({'clock': 600000000.0, 'batch': 8}, {'stack': 'pytorch-2'})
    """
    found: dict[str, Any] = {}
    for word, value in table(given, "precision=fp16").items():
        if "." in word:
            raise ValueError(f"{word!r} is a value of the device: change it by --set or --scale, in a study under `change`")
        row = called(word, [row for row in ARGUMENTS.values() if row.changed])
        found[row.name] = read(word, row.read, value)
    return found


def given_of(values: Mapping[str, Any], table: Mapping[str, Argument] = ARGUMENTS) -> dict[str, Any]:
    """The arguments among some values that somebody has given: not those at their defaults.

    >>> given_of({"batch": 4, "task": "inference", "graph": False, "stack": None, "net": "alexnet"})
    {'batch': 4, 'net': 'alexnet'}
    """
    return {key: value for key, value in values.items() if key in table and value not in (table[key].default, None, {})}
