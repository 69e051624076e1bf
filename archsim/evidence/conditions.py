"""Under which conditions a row was measured, and the rules by which files say so."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from archsim.base.errors import nearest
from archsim.base.files import data_folder
from archsim.base.schema import Form, Word, problems_of
from archsim.detect import catalog as devices
from archsim.evidence.case import QUANTITY, TIMERS
from archsim.evidence.family import families
from archsim.stack import catalog as stacks
from archsim.trace.file import names as networks
from archsim.trace.op import OPTIMISERS
from archsim.trace.training import TASKS

ANY = "*"
COLD = "cold"

# What a rule looks at: columns of a row, by one name whatever its file calls them
COLUMNS = {
    "family": "the kind of file, as `archsim validate` calls it", "source_ref": "the row's place in its source",
    "hardware": "id of the device", "architecture": "of the device", "stack": "the row's own word for it",
    "framework": "of the stack that models it", "software": "what ran, in the source's words",
    "library": "of a framework, or a variant", "network": "network or model", "task": "what was timed of it",
    "op": "of a row of a single kernel", "sub_op": "its variant", "kernel": "the kernel's name", "precision": "as written",
    "metric": "of the value", "seq_len": "tokens of a sequence", "clock_mhz": "core clock",
    "power_stat": "what a power is called", "arrival": "of requests", "notes": "remarks", "suspicious": "mark of a misprint",
    "accepted": "0: disturbed",
}  # fmt: skip


class Meter(Form):
    """How a power was read."""

    every_s: Annotated[float, Field(ge=0)] = 0.0  # read when a run begins, and then as often [s]; 0: all the time
    rounds: Annotated[int, Field(ge=1)] | None = None  # a run is at most so many, of `calls` calls each
    settled_s: Annotated[float, Field(ge=0)] = 0.0  # shortest call whose repeats last as long as the meter averages [s]
    running: Annotated[float, Field(gt=0, le=1)] = 1.0  # share of the time of which it is the mean in which the kernel ran [1]


def field(meaning: str, usual: Any, ge: float | None = None, said: str = "") -> Any:
    """A field of `Conditions`: its meaning with its unit, its usual value, its least one, and what an estimate calls it."""
    return Field(usual, description=meaning, ge=ge, title=said)


class Conditions(Form):
    """What is known of a measurement beyond what was timed. A field that is empty or 0 is as the row says, or as usual."""

    stack: str = field("the stack that models the software", "")
    graph: str = field("the graph that was built under the network's name; else as the framework builds it", "", said="network")
    task: str = field("the task as it ran, which may be more than the table says", "")
    precision: str = field("the precision that ran", "")
    tokens: int = field("tokens of each sequence", 0, ge=0)
    per_sample: int = field("what the batch of the table counts of each sample, such as its tokens", 1, ge=1)
    input_gradient: bool = field("the backward pass goes down to the images", False, said="gradient of the network's input")
    optimiser: str = field("what updates the weights", "", said="weights updated by")
    clock_mhz: float = field("core clock that was set [MHz]", 0.0, ge=0, said="core clock")
    host: str = field("the CPU that dispatched to a GPU; else the usual one beside it", "", said="host CPU")
    node: str = field("the node whose devices share a batch", "")
    input: Literal["", "device", "host", "decoded"] = field("where the timed loop finds its input; else as the stack says", "")
    timer: str = field("; ".join(f"`{name}`: {row.words}" for name, row in TIMERS.items()), "host_sync", said="timed")
    calls: int = field("calls of what was timed in one round or graph", 1, ge=1)
    loop: int | Literal["cold"] = field(
        "sets of operands that the timed loop goes through before the first comes again; `cold`: one call after other work, with "
        "operands in no cache and no power limit yet", 0, said="caches",
    )  # fmt: skip
    operands: Literal["", "constant", "quantised"] = field(
        "`constant`: each value is like the next; `quantised`: activations came to one byte before they were timed", "",
    )  # fmt: skip
    meter: Meter = field("how a power was read: `every_s`, `rounds`, `settled_s`, `running`", Meter())
    use: Literal["fit", "score", "doubt", "skip"] = field(
        "`score`: no constant is fitted to the row (split `watched`); `doubt`: neither, as its own source contradicts what it "
        "states, but intervals count it (split `doubted`); `skip`: it is not predicted", "fit",
    )  # fmt: skip

    @field_validator("stack", "graph", "task", "optimiser", "host", "node", "timer")
    @classmethod
    def _named(cls, value: str, info: Any) -> str:
        """Refuse the name of something that there is not."""
        if said := unknown(info.field_name, value):
            raise ValueError(said)
        return value


def _nodes() -> Collection[str]:
    return [file.name.removesuffix(".toml") for file in data_folder("hwspecs/hosts").iterdir()]


# names that a word of a rule must be among: of a condition, or of a column
NAMES: dict[str, Callable[[], Collection[str]]] = {
    "stack": stacks.names, "graph": networks, "task": lambda: TASKS, "optimiser": lambda: OPTIMISERS, "host": devices.names,
    "node": _nodes, "timer": lambda: TIMERS, "hardware": devices.names, "family": lambda: [one.name for one in families()],
    "metric": lambda: QUANTITY,
}  # fmt: skip


def unknown(what: str, name: str) -> str:
    """What is wrong with a name of this kind of thing; empty where there is one."""
    known = NAMES[what]()
    if not name or any(matcher(name)(one) for one in known):
        return ""
    return f"there is no {what} {name!r}; nearest: {', '.join(nearest(name, tuple(known)) or known)}"


@cache
def matcher(word: str) -> Callable[[str], bool]:
    """Whether a cell is this word, in which `*` stands for any text. An empty cell is matched by an empty word alone.

    >>> matcher("vllm-*")("vllm-0.24.0"), matcher("vllm-*")("sglang-0.5"), matcher("*")("")
    (True, False, False)
    """
    if ANY not in word:
        return lambda cell: cell == word
    found = re.compile(".*".join(map(re.escape, word.split(ANY))))
    return lambda cell: bool(cell) and found.fullmatch(cell) is not None


class ConditionRule(Form):
    """Conditions of the rows all of whose columns in `when` are one of the words there."""

    when: dict[Word, list[str]] = {}
    set: dict[Word, Any]
    why: Word

    @field_validator("when", mode="before")
    @classmethod
    def _columns(cls, when: Any) -> Any:
        """Words as lists of them. Refuse columns that no row has, and names of what there is not."""
        if not isinstance(when, dict):
            return when
        found = {name: [words] if isinstance(words, str) else words for name, words in when.items()}
        wrong = [f"there is no column {name!r}; nearest: {', '.join(nearest(name, tuple(COLUMNS)) or COLUMNS)}"
                 for name in found if name not in COLUMNS]  # fmt: skip
        wrong += [said for name in ("family", "hardware", "metric", "task") for word in found.get(name, ())
                  if isinstance(word, str) and (said := unknown(name, word))]  # fmt: skip
        if wrong:
            raise ValueError("; ".join(wrong))
        return found

    def fits(self, words: Mapping[str, str]) -> bool:
        """Whether it holds for a row with these words by column."""
        return all(any(matcher(word)(words.get(column, "")) for word in known) for column, known in self.when.items())


def rules_of(rows: object, prefix: str) -> tuple[tuple[ConditionRule, ...], list[str]]:
    """The rules of a list of tables, and what is wrong with them; `prefix` says whose they are."""
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return (), [f"{prefix}rule: must be tables `[[{prefix}rule]]`"]
    found: list[ConditionRule] = []
    problems: list[str] = []
    for number, row in enumerate(rows, 1):
        form, wrong = problems_of(ConditionRule, row, f"{prefix}rule {number}: ")
        given = row.get("set", {})
        conditions, more = problems_of(Conditions, given if isinstance(given, dict) else {}, f"{prefix}rule {number}: set.")
        problems += wrong + more
        if form is not None and conditions is not None:
            found.append(form.model_copy(update={"set": {name: getattr(conditions, name) for name in form.set}}))
    return tuple(found), problems


def of_rules(rules: Iterable[ConditionRule], words: Mapping[str, str]) -> tuple[Conditions, str]:
    """The conditions of a row with these words, of which the last rule that fits decides, and why it is used as it is."""
    found: dict[str, Any] = {}
    why = ""
    for rule in rules:
        if rule.fits(words):
            found |= rule.set
            why = rule.why if "use" in rule.set else why
    return Conditions.model_construct(**found), why
