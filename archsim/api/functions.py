"""The functions of the package: each takes the words of its command and returns an answer with types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from archsim.api.arguments import Name, Names, key_texts, positive, takes, texts
from archsim.base.arguments import IN_PROFILES, OF_POWER, SERVED, SEVERAL, changes_of, rows_called, rows_of
from archsim.base.errors import ArgumentError
from archsim.base.values import clocks, name, quantity, read, share, table, whole, yes_or_no

if TYPE_CHECKING:
    from archsim.api.sweep import Sweep
    from archsim.estimation.power import PowerEstimate
    from archsim.estimation.result import Estimate
    from archsim.generation.estimate import GenerationEstimate
    from archsim.schedule.observer import Observer
    from archsim.study.comparison import ComparedDevices, Comparison, CurveComparison
    from archsim.study.profiled import ProfileComparison
    from archsim.study.tune import Tuning
    from archsim.study.whatif import Change
    from archsim.study.within import Held
    from archsim.trace.kinds.general import WorkRule
    from archsim.validation.evaluation import Validation


PLACE = rows_called("net", "hw")
RUN = rows_of("run")


@takes(*PLACE, *RUN, *rows_of("budget", "wall"))
def estimate(net: Name, hw: Name, *, observers: Sequence[Observer] = (), **words: Any) -> Estimate:
    """Time, power, energy and memory of one network on one device, as `archsim estimate`, whose options its words are.

    Numbers are in SI units, or texts with a unit ("690MHz"). `observers` are told when what runs, at a fidelity with events.
    Under an `energy_budget` ("0.2J") the core clock is the highest at which a sample takes no more energy.

    Raises ArchsimError: ArgumentError (a ValueError) for a value, UnknownName, Unsupported, InputError for a file.
    """
    from archsim.estimation.estimate import estimate as of

    return of(str(net), str(hw), observers=observers, **words)


def register_op(name: str, work: WorkRule, *, shape: Callable[[Sequence[tuple[int, ...]]], Sequence[int]] | None = None) -> None:
    """Say what an operator costs that archsim does not know, in networks that are read after this: `MyOp`, or `my.domain.MyOp`.

    work: called with the shapes of the inputs, the shape of the result and the bytes of a value; returns FLOP and bytes moved
    shape: called with the shapes of the inputs, for files that do not state the shape of the result

    Raises ArgumentError for what is no name or no function.
    """
    from archsim.estimation.network import bound
    from archsim.trace.kinds.general import register
    from archsim.trace.task import trace_held

    register(name, work, shape)
    for held in (trace_held, bound):  # of networks that were read before
        held.cache_clear()


@takes(*rows_called("hw", *OF_POWER), *rows_of("wall"))
def power(
    hw: Name, shares: Mapping[str, float | str] | Names, *,
    counted_at: float | str | Sequence[float | str | None] | None = None, **words: Any,
) -> PowerEstimate:  # fmt: skip
    """Power of a GPU or CPU whose units are busy for these shares of the time, as `archsim power`.

    shares: {"fp32": 0.8, "dram": "30%"}, or texts UNIT=SHARE; names of DCGM and Nsight Compute do as well. `sm` is the share
        of the SMs at work, 1 if not given and any unit works. Of a CPU {"core": 0.5,
        "simd": 0.4, "llc": 0.1, "dram": "30%"}
    clock, memory_clock: where it runs; the memory clock as drivers show it, half the data rate of a pin
    counted_at: core clock, or core and memory clock, at which the shares were counted, where these are others
    power_limit: in place of the TDP
    boundary, system, set, scale, calibration: as those of `estimate`

    Raises ArgumentError for a value, UnknownName, Unsupported for a TPU and for what only GPUs have, InputError for a file.
    """
    from archsim.estimation.power import power_by_unit

    given = {} if isinstance(shares, Mapping) and not shares else read("shares", table, shares, "fp32=0.8")
    at = None if counted_at is None else read("counted_at", clocks, counted_at)
    return power_by_unit(str(hw), given, counted_at=at, **words)


@takes(*PLACE, *RUN, *rows_of("budget"))
def tune(
    net: Name, hw: Name, *, minimise: str = "energy", where: str | None = None, vary: Mapping[str, Any] | Names = (),
    **words: Any,
) -> Tuning:  # fmt: skip
    """The best setting of a device for a network, as `archsim tune`: core clock, memory clock, power limit, batch.

    minimise: energy (of a sample), energy_delay, latency, power, ...; of throughput and efficiency the most
    where: conditions, like "latency < 20ms and power < 200W"; energy_budget: the most energy of a sample, 0.2 or "200mJ"
    vary: {"batch": [1, 4, 16], "clock": "900MHz:1500MHz:50MHz"}, in place of the values that are usually tried

    Without a setting that meets the conditions, `best` is None and `nearest` misses them least.
    """
    from archsim.study.tune import tune as of

    most, varied = words.pop("energy_budget", None), key_texts("vary", vary, "batch=1:64:x2")
    return of(str(net), str(hw), words, minimise=read("minimise", name, minimise),
              where=None if where is None else read("where", name, where), vary=varied, energy_budget=most)  # fmt: skip


@takes(*PLACE, *SERVED.values())
def llm(net: Name, hw: Name, *, input: int | str, output: int | str, **words: Any) -> GenerationEstimate:
    """A language model that an engine serves, as `archsim llm`: a batch of requests that arrive at once.

    net: a shipped model or the path of a config.json; input, output: tokens of each request; batch: requests
    tp, pp, ep: devices that share layers, groups of layers, devices over which experts are spread; node: what joins them
    weights, kv: how weights, and keys and values, are stored; graph: whether decode steps are replayed as CUDA graphs
    speculative: "tokens=4,accept=0.7"; draft: the model that guesses
    set, scale, calibration: as those of `estimate`

    Raises ArgumentError for a value, UnknownName, Unsupported for a TPU and for what only GPUs have, InputError for a file.
    """
    from archsim.generation.estimate import llm as of

    return of(str(net), str(hw), input=int(input), output=int(output), **words)


@takes(*PLACE, *RUN)
def whatif(net: Name, hw: Name, *, to: Mapping[str, Any] | Names = (), area: bool = False, **words: Any) -> Change:
    """Before and after a change, as `archsim whatif`: `set` and `scale` change the device, `to` anything else.

    to: {"hw": "tesla_v100_sxm2", "precision": "fp16"}, or texts WHAT=VALUE
    area: also estimate area and cost of the dies
    """
    from archsim.study.whatif import whatif as of

    return of(str(net), str(hw), words, read("to", changes_of, to) if to else {}, read("area", yes_or_no, area))


@takes(*PLACE, *rows_of("run", without=IN_PROFILES), *rows_called("batch"))
def profile(
    file: Name, hw: Name, *, net: Name | None = None, ran_at: float | str | None = None, **words: Any
) -> ProfileComparison:
    """What a profiler recorded beside the prediction of the same run, and what the gap is made of, as `archsim profile`.

    file: a Chrome trace of PyTorch's profiler, a profile of onnxruntime, or kernels of Nsight Systems as csv
    net: what ran with which `batch`, for kernels of Nsight, which have no shapes
    ran_at: core clock at which the device ran ("1.2GHz")

    Raises ArchsimError: InputError for the file, Unsupported for one that holds no network, and those of `estimate`.
    """
    from archsim.study.profiled import compare_profile

    clock = None if ran_at is None else read("ran_at", quantity, ran_at, "Hz")
    return compare_profile(read("file", name, file), str(hw), net=None if net is None else str(net), ran_at=clock, **words)


@takes(*rows_of("run", "wall", "buyer", without=SEVERAL))
def compare(
    net: Names, hw: Names, *, stack: Names = (), batch: int | str | Iterable[int] | None = None, where: str | None = None,
    by: str = "speed", correlation: float | str | None = None, copies: bool | None = None, **words: Any,
) -> Comparison | CurveComparison | Held | tuple[Comparison | CurveComparison | Held, ...]:  # fmt: skip
    """Devices ranked on one network or several, as `archsim compare`; a tuple of answers for several networks.

    net, hw, stack: a name, a list, or a text with commas; hw also all, gpu, cpu or a pattern like "a100*"
    batch: one number, a list, or a range like "1:256:x2" for curves over batches; 1, or what the file fixes, if not given
    where: "latency < 10ms and power < 200W": the largest batch of each device that meets it
    by: speed, watt, dollar or cost
    price, prices, lifetime, duty, electricity, pue, samples, epochs: as the options; price={"h100": "2.5USD/h"}
    """
    from archsim.detect.catalog import selected
    from archsim.study.batches import batches_of
    from archsim.study.certainty import MOST_CORRELATED
    from archsim.study.within import compared

    if correlation is not None:
        correlation = read("correlation", share, correlation)
        if not 0.0 <= correlation <= MOST_CORRELATED:
            raise ArgumentError(f"correlation {correlation:g} is not between 0 and {MOST_CORRELATED:g}")
    batches = batches_of(_batch_text(batch)) if batch is not None else []
    field = field_of(selected(texts("hw", hw)), texts("stack", stack) if stack else (), by, words)
    limits = None if where is None else read("where", name, where)
    found = compared(field, texts("net", net), batches, limits, copies, correlation)
    return found[0] if len(found) == 1 else found


def field_of(devices: Sequence[str], stacks: Sequence[str], by: str, words: dict[str, Any]) -> ComparedDevices:
    """What is compared, from arguments that somebody has given, those of a buyer among them."""
    from archsim.study.comparison import ComparedDevices
    from archsim.study.price import bought

    said = {row.name: words.pop(row.name, None) for row in rows_of("buyer")}
    return ComparedDevices(devices, stacks, words, *bought(said, devices, words.get("task", "inference")), by)


def _batch_text(batch: int | str | Iterable[int]) -> str:
    """Batches as an option has them."""
    listed = [batch] if isinstance(batch, int) else batch
    return listed if isinstance(listed, str) else ",".join(str(read("batch", whole, one)) for one in listed)


@takes(*RUN)
def sweep(
    net: Names, hw: Names, *, vary: Mapping[str, Any] | Names = (), link: Mapping[str, str] | Names = (),
    sample: int | str | None = None, seed: int | str = 0, **words: Any,
) -> Sweep:  # fmt: skip
    """Every combination of the values of some knobs, or a sample of them, as `archsim sweep`.

    vary: {"sm.count": "8:64:8", "batch": [1, 16]}, or texts KEY=VALUES
    link: {"l2.bandwidth": "sm.count"}: a value that follows a knob
    sample: points of a Latin hypercube instead of the whole grid, from `seed`
    """
    from archsim.api.sweep import swept
    from archsim.detect.catalog import selected
    from archsim.study.space import space_of

    return swept(space_of(
        texts("net", net), selected(texts("hw", hw)), key_texts("vary", vary, "sm.count=8:64:8"),
        key_texts("link", link, "l2.bandwidth=sm.count"),
        sample=0 if sample is None else positive("sample", sample), seed=read("seed", whole, seed), arguments=words,
    ))  # fmt: skip


def validate(
    measurements: Names = (), *, hw: Names = (), net: Names = (), stack: Names = (), source: Names = (), split: Names = (),
    metric: Names = (), disturbed: bool = False, limit: int | str | None = None, by: Names = ("source", "quantity"),
    fidelity: str = "analytical",
    baseline: Names = ("roofline", "constants"), without: Names = (), calibration: Any = None,
) -> Validation:  # fmt: skip
    """Predictions beside published measurements, or beside those of your files, as `archsim validate`."""
    from dataclasses import replace

    from archsim.api.arguments import constants_of
    from archsim.evidence.readers import data_hash, read_files
    from archsim.validation.evaluation import device_files, selected_rows, settings_of
    from archsim.validation.evaluation import validate as scored

    def listed(word: str, value: Names) -> list[str]:
        return texts(word, value) if value else []

    files, devices = listed("measurements", measurements), listed("hw", hw)
    most = None if limit is None else positive("limit", limit)
    filters = {word: listed(word, value) for word, value in (("net", net), ("stack", stack), ("source", source), ("split", split),
                                                             ("metric", metric))}  # fmt: skip
    cases, skips = read_files(files, device_files(devices, files))
    settings = settings_of(
        cases, by=listed("by", by), fidelity=read("fidelity", name, fidelity), baseline=listed("baseline", baseline),
        without=listed("without", without), calibration=constants_of(calibration),
    )  # fmt: skip
    cases, skips = selected_rows(cases, skips, hw=devices, disturbed=disturbed, **filters)
    return replace(scored(cases[:most], skips, settings), data=data_hash(files))
