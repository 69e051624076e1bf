"""What is known of sources: where each is published and under which conditions it measured (`sources.toml`, `rules.toml`), why
predictions of its rows are far off (`misses.toml`), and what other tools claim of themselves (`peers/claims.toml`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from archsim.base.errors import near_words, refuse
from archsim.base.files import LIMITS, data_folder, read_text
from archsim.base.schema import Form, Word, problems_of
from archsim.base.toml import parsed
from archsim.detect import catalog as devices
from archsim.evidence.case import QUANTITY, TIMERS, Case
from archsim.evidence.family import FOLDER, PEERS, families, toml_rows
from archsim.node.shipped import names_in
from archsim.stack import catalog as stacks
from archsim.trace.file import names as networks
from archsim.trace.op import OPTIMISERS
from archsim.trace.training import TASKS

COLD = "cold"

# What a rule looks at: columns of a row, by one name whatever its file calls them
COLUMNS = (
    "family", "source_ref", "hardware", "architecture", "stack", "framework", "software", "library", "network", "task", "op",
    "sub_op", "kernel", "precision", "metric", "seq_len", "clock_mhz", "power_stat", "arrival", "notes", "suspicious", "accepted",
)  # fmt: skip


class Meter(Form):
    """How a power was read."""

    every_s: Annotated[float, Field(ge=0)] = 0.0  # read when a run begins, and then as often [s]; 0: all the time
    rounds: Annotated[int, Field(ge=1)] | None = None  # a run is at most so many, of `calls` calls each
    settled_s: Annotated[float, Field(ge=0)] = 0.0  # shortest call whose repeats last as long as the meter averages [s]
    running: Annotated[float, Field(gt=0, le=1)] = 1.0  # share of the time of which it is the mean in which the kernel ran [1]


class Conditions(Form):
    """What is known of a measurement beyond what was timed. A field that is empty or 0 is as the row says, or as usual.

    The title of a field is what an estimate calls it. `reports/README.md` has the fields as a table.
    """

    stack: str = ""  # that models the software
    graph: str = Field("", title="network")  # that was built under the network's name; else as the framework builds it
    task: str = ""  # as it ran, which may be more than the table says
    precision: str = ""  # that ran
    tokens: int = Field(0, ge=0)  # of each sequence
    per_sample: int = Field(1, ge=1)  # what the batch of the table counts of each sample, such as its tokens
    input_gradient: bool = Field(False, title="gradient of the network's input")  # the backward pass goes down to the images
    optimiser: str = Field("", title="weights updated by")  # what updates the weights
    clock_mhz: float = Field(0.0, ge=0, title="core clock")  # that was set [MHz]
    host: str = Field("", title="host CPU")  # that dispatched to a GPU; else the usual one beside it
    node: str = ""  # whose devices share a batch
    input: Literal["", "device", "host", "decoded"] = ""  # where the timed loop finds its input; else as the stack says
    search: bool = Field(False, title="kernels of convolutions")  # timed for each layer, where the stack does not anyway
    timer: str = Field("host_sync", title="timed")  # a name of `TIMERS`
    calls: int = Field(1, ge=1)  # of what was timed in one round or graph
    # Sets of operands that the timed loop goes through before the first comes again; `cold`: one call after other work, with
    # operands in no cache and no power limit yet.
    loop: int | Literal["cold"] = Field(0, title="caches")
    # `constant`: each value is like the next; `quantised`: activations came to one byte before they were timed.
    operands: Literal["", "constant", "quantised"] = ""
    meter: Meter = Meter()
    # `score`: no constant is fitted to the row (split `watched`); `doubt`: neither, as its own source contradicts what it
    # states, but intervals count it (split `doubted`); `skip`: it is not predicted.
    use: Literal["fit", "score", "doubt", "skip"] = "fit"

    @field_validator("stack", "graph", "task", "optimiser", "host", "node", "timer")
    @classmethod
    def _named(cls, value: str, info: Any) -> str:
        """Refuse the name of something that there is not."""
        if said := unknown(info.field_name, value):
            raise ValueError(said)
        return value


# names that a word of a rule must be among: of a condition, or of a column
NAMES: dict[str, Callable[[], Collection[str]]] = {
    "stack": stacks.names, "graph": networks, "task": lambda: TASKS, "optimiser": lambda: OPTIMISERS, "host": devices.names,
    "node": lambda: names_in("hwspecs/hosts"), "timer": lambda: TIMERS, "hardware": devices.names,
    "family": lambda: [one.name for one in families()], "metric": lambda: QUANTITY,
}  # fmt: skip


def unknown(what: str, name: str) -> str:
    """What is wrong with a name of this kind of thing; empty where there is one."""
    known = NAMES[what]()
    if not name or any(matches(name, one) for one in known):
        return ""
    return f"there is no {what} {name!r}; nearest: {near_words(name, known)}"


def matches(word: str, cell: str) -> bool:
    """Whether a cell is this word, in which `*` stands for any text. An empty cell is matched by an empty word alone.

    >>> matches("vllm-*", "vllm-0.24.0"), matches("vllm-*", "sglang-0.5"), matches("*", "")
    (True, False, False)
    """
    return cell == word or ("*" in word and bool(cell) and fnmatchcase(cell, word))


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
        wrong = [f"there is no column {name!r}; nearest: {near_words(name, COLUMNS)}"
                 for name in found if name not in COLUMNS]  # fmt: skip
        wrong += [said for name in ("family", "hardware", "metric", "task") for word in found.get(name, ())
                  if isinstance(word, str) and (said := unknown(name, word))]  # fmt: skip
        if wrong:
            raise ValueError("; ".join(wrong))
        return found

    def fits(self, words: Mapping[str, str]) -> bool:
        """Whether it holds for a row with these words by column."""
        return all(any(matches(word, words.get(column, "")) for word in known) for column, known in self.when.items())


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


# -------------------------------------------------------------------------------------------------------------- sources

FILES = "sources.toml", "rules.toml"  # of each source, and rules for rows of every source
RULE = "rule"
FAR = 0.25  # an error of more needs a reason
NOTE = ("On rows and by measures of their own, a mean where others have a median: comparable neither with a score on these rows "
        "nor with each other.")  # fmt: skip


class PublishedSource(Form):
    """What `sources.toml` says of a source besides its rules; `boundary` is what its powers cover."""

    citation: Word
    title: str = ""
    measured: str = ""
    doubts: str = ""
    boundary: str = ""


def source_of(name: str) -> PublishedSource:
    """What is known of a source; its name as citation where it is not described."""
    return sources().get(name) or PublishedSource(citation=name)


def conditions_of(source: str, words: Mapping[str, str]) -> tuple[Conditions, str]:
    """The conditions of a row with these words by column, and why it is used as it is; equal words give the same object.

    Rules of all sources come first, then those of the row's own; in each field the last one that fits decides.
    """
    return _conditions(source, tuple(words.get(name, "") for name in _looked_at(source)))


def sources() -> Mapping[str, PublishedSource]:
    """Every described source by its id. Raises InputError with all problems of the file, each with its table and key."""
    return _shipped()[0]


def rules(source: str) -> tuple[ConditionRule, ...]:
    """The rules for rows of a source, the decisive last."""
    own = _shipped()[1]
    return (*own[""], *own.get(source, ()))


def read_sources(text: str, path: str) -> tuple[dict[str, PublishedSource], dict[str, tuple[ConditionRule, ...]]]:
    """The sources in the text of a file, which `path` names in errors, and the rules of each; "" has those of every source."""
    document, found = parsed(text, path, "sources"), dict[str, PublishedSource]()
    common, problems = rules_of(document.pop(RULE, []), "")
    own = {"": common}
    for name, entry in document.items():
        if not isinstance(entry, dict):
            problems.append(f"{name}: must be a table")
            continue
        own[name], more = rules_of(entry.pop(RULE, []), f"{name}.")
        form, wrong = problems_of(PublishedSource, entry, f"{name}.", also=(RULE,))
        problems += wrong + more
        found |= {} if form is None else {name: form}
    refuse(path, problems)
    return found, own


@cache
def _shipped() -> tuple[Mapping[str, PublishedSource], Mapping[str, tuple[ConditionRule, ...]]]:
    files = [data_folder(FOLDER).joinpath(name) for name in FILES]
    of_sources, of_all = (read_sources(read_text(file, LIMITS["sources"].size), str(file)) for file in files)
    return of_sources[0], of_sources[1] | of_all[1]


@cache
def _looked_at(source: str) -> tuple[str, ...]:
    """The columns that rules for rows of a source look at."""
    return tuple(dict.fromkeys(column for rule in rules(source) for column in rule.when))


@lru_cache(maxsize=65536)
def _conditions(source: str, cells: tuple[str, ...]) -> tuple[Conditions, str]:
    return of_rules(rules(source), dict(zip(_looked_at(source), cells, strict=True)))


# --------------------------------------------------------------------------------------------------------------- misses


class Miss(Form):
    """One `[[miss]]`: patterns (`*` stands for any text) that a row has to match, and the reason.

    `stack` and `threads` are as the source writes them; `predicted` says which misses it explains, both without it.
    """

    source: Word
    reason: Word
    network: Word = "*"
    hardware: Word = "*"
    stack: Word = "*"
    task: Word = "*"
    threads: str = "*"
    predicted: Literal["", "too fast", "too slow", "too high", "too low"] = ""

    def matches(self, case: Case) -> bool:
        """Whether a row is one of those that the reason is about, whatever its error."""
        return all(fnmatchcase(value, pattern) for value, pattern in (
            (case.source, self.source), (case.label, self.network), (case.hardware, self.hardware),
            (published_stack(case), self.stack), (case.fields.get("task", case.task), self.task),
            (case.fields.get("threads", ""), self.threads),
        ))  # fmt: skip

    def explains(self, error: float) -> bool:
        """Whether it is about an error of this sign."""
        return not self.predicted or (error < 0) == (self.predicted in ("too fast", "too low"))


def published_stack(case: Case) -> str:
    """What the source calls the software of a row."""
    return case.fields.get("stack") or case.stack_id


def reason_of(case: Case, error: float) -> str:
    """Why a prediction misses a published value by more than `FAR`; empty for a smaller error, and where it is not known."""
    if abs(error) <= FAR:
        return ""
    return next((miss.reason for miss in misses() if miss.explains(error) and miss.matches(case)), "")


@cache
def misses() -> tuple[Miss, ...]:
    """The shipped reasons, in the order of the file: the first that fits holds."""
    return toml_rows(Miss, "miss", FOLDER, "misses.toml")


class Claim(Form):
    """One `[[claim]]`: what a tool says, of what, where that was read, and which of its predictions are scored here."""

    tool: Word
    says: Word
    of: Word
    source: Word
    url: Word
    here: Word


@cache
def claims() -> tuple[Claim, ...]:
    """The shipped claims, in the order of the file."""
    return toml_rows(Claim, "claim", PEERS, "claims.toml")
