"""What is known of each source of measurements: where it is published, and how its scripts measured (`sources.toml`)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from typing import Annotated, Literal

from pydantic import Field, field_validator

from archsim.base.errors import InputError
from archsim.base.files import data_folder, read_text
from archsim.base.limits import LIMITS
from archsim.base.schema import Form, Word, problems_of
from archsim.base.toml import parsed
from archsim.calibration.constants import default
from archsim.evidence.beginning import begins, longest
from archsim.evidence.shipped import FOLDER
from archsim.stack.read import read
from archsim.stack.reader import SampleReader
from archsim.stack.stack import NEVER_AGAIN
from archsim.trace.training import ACCUMULATE

FILE = "sources.toml"
EAGER = "pytorch-"  # software that launches its kernels one by one

Place = Literal["", "device", "host", "decoded"]
Positive = Annotated[float, Field(gt=0)]
Whole = Annotated[int, Field(ge=1)]


class PowerMeter(Form):
    """A power meter that is read when a run begins, and every `every_s` [s] until it ends.

    A run is at most `runs` rounds of one call, or of as many as `calls` says of its "op dtype".
    """

    every_s: Positive
    runs: Whole
    calls: dict[Word, Whole] = {}

    def longest_run(self, op: str, dtype: str, latency_s: float) -> float:
        """The longest that the repeats of a call can have taken [s]."""
        return self.runs * self.calls.get(f"{op} {dtype}", 1) * latency_s


class Protocol(Form):
    """One table of `sources.toml`: a citation, and what the source's scripts do besides what its tables say.

    Keys of mappings name what they hold for: a network or "framework network" in `graphs`, and in `contradicted` how a
    row's place in the source (`source_ref`) begins. The stack that ran is the row's own: `ran`, or `stack`.
    """

    citation: Word
    title: str = ""
    measured: str = ""
    doubts: str = ""

    # what ran
    graphs: dict[Word, Word] = {}  # or "network task" -> the graph that is built under the network's name
    # how "software op dtype" begins (* for any text), or an op -> sets of operands that a loop goes through before it is back
    # at the first
    operand_sets: dict[Word, Whole] = {}
    # beginnings of "software op dtype" (* for any text) whose loops have no more sets than it takes for weights to fill the L2
    filled: list[Word] = []
    host_cpus: dict[Word, Word] = {}  # hardware, or "all" -> the CPU that dispatched to it
    uncounted: list[Word] = []  # beginnings of places of rows whose number of threads was presumed, and is not what ran
    clocks: dict[Word, Positive] = {}  # hardware -> the core clock that was set [MHz]
    tokens: dict[Word, Whole] = {}  # "framework network" -> tokens of a sequence, where its batch counts tokens
    lengths: dict[Word, Whole] = {}  # network -> tokens of its sequences, where rows do not say
    # beginnings of places (* for any text) of rows whose precision the table presumes -> what the source's configurations say
    precisions: dict[Word, Word] = {}
    replayed: list[Word] = []  # beginnings of places (* for any text) of rows whose run was the replay of one CUDA graph
    node: str = ""  # the node whose devices shared a step
    overlapping: list[Word] = []  # frameworks that exchange gradients while they compute others

    contradicted: dict[Word, Word] = {}  # rows whose stated conditions the source's own tables contradict -> how

    # what is timed
    forward: Literal["training"] | list[Word] = []  # forward passes that run as in training: all, or of a "framework network"
    input_gradient: list[Word] = []  # networks, frameworks or "framework network" whose backward pass goes down to the input
    optimisers: dict[Word, Literal["sgd", "sgd_momentum", "adam"]] = {}  # "framework network" -> what its script trains with
    updates: list[Word] = []  # frameworks whose backward pass also updates the weights
    accumulates: bool = False  # whether gradients are added to those of the run before, as nobody clears or uses them
    loss_apart: bool = False  # whether the loss is computed between the timed passes, and its gradient in the backward one
    inputs: Place | dict[Word, Place] = ""  # where the timed loop finds its input, or a "framework network"'s; else as the stack
    # how "hardware place" begins (* for any text) -> where the timed loop of such a row finds its input
    inputs_at: dict[Word, Place] = {}
    input_value_bytes: Whole | None = None  # bytes of a value of its input, as the host has it and as it crosses; else 4
    input_copies: Annotated[int, Field(ge=0)] | None = None  # copies within host memory before that; else as the stack
    # "framework network" -> keys of the stack's `reader` that its script sets otherwise, where its inputs are decoded
    readers: dict[Word, dict[Word, int | str]] = {}
    dense_labels: list[Word] = []  # "framework network" that is fed a value for each class, not an index
    reordered: list[Word] = []  # "framework network" whose data are copied into a new order for each epoch
    doubles: list[Word] = []  # "framework network" whose host arrays hold doubles
    double_precision: list[Word] = []  # "framework network" that computes in fp64 on CPUs, whatever its tables say
    waits: list[Word] = []  # frameworks whose timer waits for each layer
    wrapped: list[Word] = []  # "op" or "op sub_op" of kernels that were called through Python's own code, as often as listed
    # beginnings of "software dtype" (* for any text) of kernels that are launched one by one, not by a replayed graph, in a loop
    # that does not wait for them
    launched: list[Word] = []

    # beginnings of "software dtype" (* for any text) of kernels that were timed one by one between two events of the host
    between_events: list[Word] = []

    # how "software op dtype" begins (* for any text) -> calls in a graph that the timed loop replays; others are in none
    graph_calls: dict[Word, Whole] = {}

    # beginnings of "software op dtype" (* for any text) of products one of whose operands is memory that nobody wrote, zeros
    zeros: list[Word] = []

    # beginnings of "software op dtype" (* for any text) of calls that ran once, other work before them: what they read is in no
    # cache, no graph was replayed, and no power limit has had the time to act
    once: list[Word] = []
    # beginnings of "software op dtype" (* for any text) of products whose activations were rounded before they were timed
    rounded: list[Word] = []

    # power
    boundary: str = ""  # what its powers cover
    meter: PowerMeter | None = None
    # what its powers are called ("avg", ...) -> share of the time they cover in which the kernel runs; else all of it
    running: dict[Word, Annotated[float, Field(gt=0, le=1)]] = {}
    metered_from_s: Annotated[float, Field(ge=0)] = 0.0  # shortest call whose repeats last as long as the meter averages [s]
    alike: bool = False  # each value of its arrays is like the next: bytes switch as little as those of zeros
    unwritten: list[Word] = []  # "op dtype" whose operands are memory that was never written, so what they switch is unknown

    @field_validator("readers")
    @classmethod
    def _known(cls, readers: dict[str, dict[str, int | str]]) -> dict[str, dict[str, int | str]]:
        """Refuse keys and values that a reader does not have."""
        wrong = [f"{name}: {problem}" for name, table in readers.items() for problem in read(SampleReader, table)[1]]
        if wrong:
            raise ValueError("; ".join(wrong))
        return readers

    def reader(self, network: str, framework: str, own: SampleReader) -> SampleReader:
        """How the script decodes its samples: `own`, with what is known to differ."""
        found, _ = read(SampleReader, asdict(own) | self.readers.get(f"{framework} {network}", {}))
        assert found is not None  # as `_known` has made sure
        return found

    def task(self, task: str, network: str, framework: str) -> str:
        """The task as it really ran."""
        if framework in self.updates or self.accumulates:
            task = {"backward": "backward_update", "forward_backward": "training_step"}.get(task, task)
        trained = self.forward == "training" or f"{framework} {network}" in self.forward
        return "forward" if task == "inference" and trained else task

    def host_cpu(self, hardware: str) -> str:
        """The CPU that dispatched to this hardware; empty where the source does not say."""
        return self.host_cpus.get(hardware, self.host_cpus.get("all", ""))

    def counted(self, reference: str) -> bool:
        """Whether the number of threads of the row at this place of the source is what ran."""
        return not any(begins(reference, start) for start in self.uncounted)

    def precision(self, stated: str, reference: str) -> str:
        """The precision that ran, at this place of the source."""
        return longest(self.precisions, reference) or stated

    def replays(self, reference: str) -> bool:
        """Whether the run of the row at this place of the source was the replay of one CUDA graph."""
        return any(begins(reference, start) for start in self.replayed)

    def waits_for(self, framework: str) -> bool:
        """Whether the timer waited for each layer."""
        return framework in self.waits

    def dispatch(self, software: str, dtype: str) -> float:
        """Whether the host CPU's time for a call was timed with a kernel (1), or a graph was replayed (0)."""
        replayed = any(key.startswith(software.partition("/")[0]) for key in self.graph_calls)
        return float((software.startswith(EAGER) and not replayed) or self.ahead(software, dtype))

    def ahead(self, software: str, dtype: str) -> bool:
        """Whether the host issued calls without waiting for those before."""
        return any(begins(f"{software} {dtype}", start) for start in self.launched)

    def between(self, software: str, dtype: str) -> bool:
        """Whether a kernel was timed between two events that the host recorded before and after its call."""
        return any(begins(f"{software} {dtype}", start) for start in self.between_events)

    def wrappers(self, op: str, sub_op: str) -> int:
        """Modules, functions and warnings of Python around the call of a kernel, whose time is the host's too."""
        return self.wrapped.count(op) + self.wrapped.count(f"{op} {sub_op}")

    def sets_of(self, software: str, op: str, dtype: str, fill: float = math.inf) -> int:
        """Sets of operands that the timed loop goes through before the first comes again.

        fill: sets whose weights are as large as the device's L2 [1]
        """
        if self.ran_once(software, op, dtype):
            return NEVER_AGAIN
        words = f"{software} {op} {dtype}"
        sets = longest(self.operand_sets, words) or self.operand_sets.get(op, 1)
        return max(1, math.ceil(min(sets, fill))) if any(begins(words, start) for start in self.filled) else sets

    def ran_once(self, software: str, op: str, dtype: str) -> bool:
        """Whether a call ran once, and not in a loop."""
        return any(begins(f"{software} {op} {dtype}", start) for start in self.once)

    def rounded_before(self, software: str, op: str, dtype: str) -> bool:
        """Whether activations of a product were rounded before it was timed."""
        return any(begins(f"{software} {op} {dtype}", start) for start in self.rounded)

    def calls_of_graph(self, software: str, op: str, dtype: str) -> int:
        """Calls in a graph that the timed loop replays; 0 where it launches them one by one, or where that does not tell."""
        graph = not self.dispatch(software, dtype) and not self.ran_once(software, op, dtype)
        return 0 if not graph else longest(self.graph_calls, f"{software} {op} {dtype}") or 0

    def power_limit(self, software: str, op: str, dtype: str, tdp: float) -> float | None:
        """The power limit that kernels behave as if they kept to [W]: more than the TDP where operands are zeros; else None."""
        zeros = any(begins(f"{software} {op} {dtype} ", start) for start in self.zeros)
        return tdp / default()["energy.zeros"] if zeros else None

    def samples(self, batch: int, network: str, framework: str) -> int:
        """The samples in a batch that the source calls `batch`."""
        return max(1, batch // self.tokens.get(f"{framework} {network}", 1))

    def graph(self, network: str, framework: str, task: str, otherwise: str) -> str:
        """The graph that was built, `otherwise` unless it is known to differ."""
        named = (f"{framework} {network}", f"{network} {task}", network)
        return next((self.graphs[name] for name in named if name in self.graphs), otherwise)

    def of_inputs(self, network: str, framework: str) -> bool:
        """Whether the gradient of the network's input was computed."""
        return any(name in self.input_gradient for name in (network, framework, f"{framework} {network}"))

    def optimiser(self, network: str, framework: str, usual: str) -> str:
        """What the weights were updated with, `usual` unless the script is known to take another."""
        return ACCUMULATE if self.accumulates else self.optimisers.get(f"{framework} {network}", usual)

    def inputs_of(self, network: str, framework: str, hardware: str = "", reference: str = "") -> Place:
        """Where the timed loop finds its input; empty for what the stack says."""
        if (found := longest(self.inputs_at, f"{hardware} {reference}")) is not None:
            return found
        return self.inputs if isinstance(self.inputs, str) else self.inputs.get(f"{framework} {network}", "")


def protocol(source: str) -> Protocol:
    """The protocol of a source; a plain one for a source that is not described."""
    return sources().get(source) or Protocol(citation=source)


def citation(source: str) -> str:
    """The short citation of a source; its id where it is not described."""
    return protocol(source).citation


@cache
def sources() -> Mapping[str, Protocol]:
    """Every described source by its id. Raises InputError with all problems of the file, each with its table and key."""
    place = data_folder(FOLDER).joinpath(FILE)
    return read_sources(read_text(place, LIMITS["sources"].size), str(place))


def read_sources(text: str, path: str) -> dict[str, Protocol]:
    """The sources in the text of a file, which `path` names in errors."""
    document = parsed(text, path, "sources")
    found: dict[str, Protocol] = {}
    problems: list[str] = []
    for name, entry in document.items():
        if not isinstance(entry, dict):
            problems.append(f"{name}: must be a table")
            continue
        form, wrong = problems_of(Protocol, entry, f"{name}.")
        problems += wrong
        found |= {} if form is None else {name: form}
    if problems:
        raise InputError(path, problems)
    return found
