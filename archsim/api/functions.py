"""The functions of the package: each takes the words of its command and returns an answer with types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from archsim.api.arguments import (
    BUYING,
    BuyingWords,
    DeviceWords,
    EstimateWords,
    Name,
    Names,
    ProfileWords,
    RunWords,
    check_names,
    device_arguments,
    quantity,
    run_arguments,
    text,
    texts,
    yes_or_no,
)
from archsim.base.errors import ArgumentError

if TYPE_CHECKING:
    from archsim.api.sweep import Sweep
    from archsim.estimation.power_estimate import PowerEstimate
    from archsim.estimation.result import Estimate
    from archsim.generation.estimate import GenerationEstimate
    from archsim.schedule.observer import Observer
    from archsim.study.comparison import Comparison, CurveComparison
    from archsim.study.profiled import ProfileComparison
    from archsim.study.tune import Tuning
    from archsim.study.whatif import Change
    from archsim.study.within import Held
    from archsim.trace.registry import WorkRule
    from archsim.validation.evaluation import Validation


def estimate(
    net: Name, hw: Name, *, observers: Sequence[Observer] = (), energy_budget: float | str | None = None,
    **words: Unpack[EstimateWords],
) -> Estimate:  # fmt: skip
    """Time, power, energy and memory of one network on one device, as `archsim estimate`.

    Words are those of its options: batch, seq_len, bind, strict, precision, task, stack, threads, clock, memory_clock,
    power_limit, power_mode, fidelity, traffic, streams, host_cpu, inputs, graph, cold, fusion, boundary, system, set, scale,
    calibration. Numbers are in SI units, or texts with a unit ("690MHz").

    `observers` are told when what runs, at a fidelity with events. Under an `energy_budget` ("0.2J") the core clock is the
    highest at which a sample takes no more energy.

    Raises ArchsimError: ArgumentError (a ValueError) for a value, UnknownName, Unsupported, InputError for a file.
    """
    from archsim.estimation.estimate import estimate as of

    most = None if energy_budget is None else quantity("J")("energy_budget", energy_budget)
    return of(text("net", net), text("hw", hw), observers=observers, energy_budget=most,
              **run_arguments("estimate", words, EstimateWords))  # fmt: skip


def register_op(name: str, work: WorkRule, *, shape: Callable[[Sequence[tuple[int, ...]]], Sequence[int]] | None = None) -> None:
    """Say what an operator costs that archsim does not know, in networks that are read after this: `MyOp`, or `my.domain.MyOp`.

    work: called with the shapes of the inputs, the shape of the result and the bytes of a value; returns FLOP and bytes moved
    shape: called with the shapes of the inputs, for files that do not state the shape of the result

    Raises ArgumentError for what is no name or no function.
    """
    from archsim.estimation.sizes import bound
    from archsim.trace.registry import register
    from archsim.trace.task import trace_held

    register(name, work, shape)
    for held in (trace_held, bound):  # of networks that were read before
        held.cache_clear()


def power(
    hw: Name, shares: Mapping[str, float | str] | Names, *, sm: float | str | None = None, clock: float | str | None = None,
    memory_clock: float | str | None = None, counted_at: float | str | Sequence[float | str | None] | None = None,
    power_limit: float | str | None = None, boundary: str | None = None, system: Name | None = None, **words: Unpack[DeviceWords],
) -> PowerEstimate:  # fmt: skip
    """Power of a GPU or CPU whose units are busy for these shares of the time, as `archsim power`.

    shares: {"fp32": 0.8, "dram": "30%"}, or texts UNIT=SHARE; names of DCGM and Nsight Compute do as well. Of a CPU {"core": 0.5,
        "simd": 0.4, "llc": 0.1, "dram": "30%"}
    sm: share of the SMs at work, or of the time in which they are; 1 if not given and any unit works
    clock, memory_clock: where it runs; the memory clock as drivers show it, half the data rate of a pin
    counted_at: core clock, or core and memory clock, at which the shares were counted, where these are others
    power_limit: in place of the TDP
    boundary, system: as those of `estimate`
    set, scale, calibration: as those of `estimate`

    Raises ArgumentError for a value, UnknownName, Unsupported for a TPU and for what only GPUs have, InputError for a file.
    """
    from archsim.api.arguments import pair_of, table
    from archsim.estimation.power import power_by_unit

    check_names("power", words, (*DeviceWords.__annotations__, "sm", "clock", "memory_clock", "counted_at", "power_limit",
                                 "boundary", "system"))
    hertz, given = quantity("Hz"), {} if isinstance(shares, Mapping) and not shares else table("shares", shares)
    if sm is not None:
        if "sm" in given:
            raise ArgumentError("sm: given among the shares too; name it once")
        given["sm"] = sm
    core, memory = (None, None) if counted_at is None else pair_of("counted_at", counted_at)
    return power_by_unit(
        text("hw", hw), given, clock=None if clock is None else hertz("clock", clock),
        memory_clock_hz=None if memory_clock is None else hertz("memory_clock", memory_clock),
        counted_at=None if core is None else (hertz("counted_at", core), None if memory is None else hertz("counted_at", memory)),
        power_limit=None if power_limit is None else quantity("W")("power_limit", power_limit),
        boundary=None if boundary is None else text("boundary", boundary),
        system=None if system is None else text("system", system),
        **device_arguments("power", words),
    )  # fmt: skip


def tune(
    net: Name, hw: Name, *, minimise: str = "energy", where: str | None = None, vary: Mapping[str, Any] | Names = (),
    energy_budget: float | str | None = None, **words: Unpack[RunWords],
) -> Tuning:  # fmt: skip
    """The best setting of a device for a network, as `archsim tune`: core clock, memory clock, power limit, batch.

    minimise: energy (of a sample), energy_delay, latency, power, ...; of throughput and efficiency the most
    where: conditions, like "latency < 20ms and power < 200W"; energy_budget: the most energy of a sample, 0.2 or "200mJ"
    vary: {"batch": [1, 4, 16], "clock": "900MHz:1500MHz:50MHz"}, in place of the values that are usually tried

    Without a setting that meets the conditions, `best` is None and `nearest` misses them least.
    """
    from archsim.api.arguments import vary_texts
    from archsim.study.tune import tune as of

    most = None if energy_budget is None else quantity("J")("energy_budget", energy_budget)
    return of(text("net", net), text("hw", hw), run_arguments("tune", words), minimise=text("minimise", minimise),
              where=None if where is None else text("where", where), vary=vary_texts(vary), energy_budget=most)  # fmt: skip


def llm(
    net: Name, hw: Name, *, input: int | str, output: int | str, batch: int | str = 1, tp: int | str = 1, pp: int | str = 1,
    ep: int | str = 1, engine: str | None = None, precision: str | None = None, weights: str | None = None, kv: str | None = None,
    node: Name | None = None, graph: bool | None = None, speculative: str | None = None, draft: Name | None = None,
    clock: float | str | None = None, power_limit: float | str | None = None, host_cpu: Name | None = None,
    **words: Unpack[DeviceWords],
) -> GenerationEstimate:  # fmt: skip
    """A language model that an engine serves, as `archsim llm`: a batch of requests that arrive at once.

    net: a shipped model or the path of a config.json; input, output: tokens of each request; batch: requests
    tp, pp, ep: devices that share layers, groups of layers, devices over which experts are spread; node: what joins them
    weights, kv: how weights, and keys and values, are stored; graph: whether decode steps are replayed as CUDA graphs
    speculative: "tokens=4,accept=0.7"; draft: the model that guesses
    set, scale, calibration: as those of `estimate`

    Raises ArgumentError for a value, UnknownName, Unsupported for a TPU and for what only GPUs have, InputError for a file.
    """
    from archsim.api.arguments import whole
    from archsim.generation.estimate import llm as of

    check_names("llm", words, tuple(DeviceWords.__annotations__))
    counts = {"input": input, "output": output, "batch": batch, "tp": tp, "pp": pp, "ep": ep}
    said = {"engine": engine, "precision": precision, "weights": weights, "kv": kv, "speculative": speculative}
    named = {"node": node, "draft": draft, "host_cpu": host_cpu}
    return of(
        text("net", net), text("hw", hw), **{name: whole(name, value) for name, value in counts.items()},
        **{name: None if value is None else text(name, value) for name, value in {**said, **named}.items()},
        graph=None if graph is None else yes_or_no("graph", graph),
        clock=None if clock is None else quantity("Hz")("clock", clock),
        power_limit=None if power_limit is None else quantity("W")("power_limit", power_limit),
        **device_arguments("llm", words),
    )  # fmt: skip


def whatif(
    net: Name, hw: Name, *, to: Mapping[str, Any] | Names = (), area: bool = False, **words: Unpack[RunWords]
) -> Change:  # fmt: skip
    """Before and after a change, as `archsim whatif`: `set` and `scale` change the device, `to` anything else.

    to: {"hw": "tesla_v100_sxm2", "precision": "fp16"}, or texts WHAT=VALUE
    area: also estimate area and cost of the dies
    """
    from archsim.api.arguments import READ, table
    from archsim.study.changed import CHANGES
    from archsim.study.whatif import whatif as of

    arguments, other = run_arguments("whatif", words), table("to", to) if to else {}
    check_names("to", other, CHANGES)
    moved = {key: READ.get(key, text)(key, value) for key, value in other.items()}
    return of(text("net", net), text("hw", hw), arguments, moved, yes_or_no("area", area))


def profile(
    file: Name, hw: Name, *, net: Name | None = None, ran_at: float | str | None = None, **words: Unpack[ProfileWords]
) -> ProfileComparison:  # fmt: skip
    """What a profiler recorded beside the prediction of the same run, and what the gap is made of, as `archsim profile`.

    file: a Chrome trace of PyTorch's profiler, a profile of onnxruntime, or kernels of Nsight Systems as csv
    net: what ran with which `batch`, for kernels of Nsight, which have no shapes
    ran_at: core clock at which the device ran ("1.2GHz")

    Raises ArchsimError: InputError for the file, Unsupported for one that holds no network, and those of `estimate`.
    """
    from archsim.study.profiled import compare_profile

    clock = None if ran_at is None else quantity("Hz")("ran_at", ran_at)
    return compare_profile(text("file", file), text("hw", hw), net=None if net is None else text("net", net), ran_at=clock,
                           **run_arguments("profile", words, ProfileWords))  # fmt: skip


def compare(
    net: Names, hw: Names, *, stack: Names = (), batch: int | str | Iterable[int] | None = None, where: str | None = None,
    by: str = "speed", correlation: float | str | None = None, copies: bool | None = None, **words: Unpack[BuyingWords],
) -> Comparison | CurveComparison | Held | tuple[Comparison | CurveComparison | Held, ...]:  # fmt: skip
    """Devices ranked on one network or several, as `archsim compare`; a tuple of answers for several networks.

    net, hw, stack: a name, a list, or a text with commas; hw also all, gpu, cpu or a pattern like "a100*"
    batch: one number, a list, or a range like "1:256:x2" for curves over batches; 1, or what the file fixes, if not given
    where: "latency < 10ms and power < 200W": the largest batch of each device that meets it
    by: speed, watt, dollar or cost
    price, prices, exchange, lifetime, duty, electricity, pue, samples, epochs: as the options; price={"h100": "2.5USD/h"}
    """
    from archsim.api.arguments import buying_arguments
    from archsim.base.units import parse_share
    from archsim.detect.selection import selected
    from archsim.study.batches import batches_of
    from archsim.study.certainty import MOST_CORRELATED
    from archsim.study.comparison import ComparedDevices
    from archsim.study.ranking import check_criterion
    from archsim.study.within import compared

    said = {name: value for name, value in words.items() if name in BUYING}
    arguments = run_arguments("compare", {name: value for name, value in words.items() if name not in BUYING}, EstimateWords)
    check_criterion(by)
    if correlation is not None:
        try:
            correlation = parse_share(correlation) if isinstance(correlation, str) else quantity("1")("correlation", correlation)
        except ValueError as error:
            raise ArgumentError(f"correlation: {error}") from None
        if not 0.0 <= correlation <= MOST_CORRELATED:
            raise ArgumentError(f"correlation {correlation:g} is not between 0 and {MOST_CORRELATED:g}")
    batches = batches_of(_batch_text(batch)) if batch is not None else []
    devices = selected(texts("hw", hw))
    bought = buying_arguments(said, devices, arguments.get("task", "inference"))
    field = ComparedDevices(devices, texts("stack", stack) if stack else (), arguments, *bought, by)
    found = compared(field, texts("net", net), batches, None if where is None else text("where", where), copies, correlation)
    return found[0] if len(found) == 1 else found


def _batch_text(batch: int | str | Iterable[int]) -> str:
    """Batches as an option has them."""
    from archsim.api.arguments import whole

    listed = [batch] if isinstance(batch, int) else batch
    return listed if isinstance(listed, str) else ",".join(str(whole("batch", one)) for one in listed)


def sweep(
    net: Names, hw: Names, *, vary: Mapping[str, Any] | Names = (), link: Mapping[str, str] | Names = (),
    sample: int | str | None = None, seed: int | str = 0, **words: Unpack[RunWords],
) -> Sweep:  # fmt: skip
    """Every combination of the values of some knobs, or a sample of them, as `archsim sweep`.

    vary: {"sm.count": "8:64:8", "batch": [1, 16]}, or texts KEY=VALUES
    link: {"l2.bandwidth": "sm.count"}: a value that follows a knob
    sample: points of a Latin hypercube instead of the whole grid, from `seed`
    """
    from archsim.api.sweep import swept

    return swept(net, hw, vary, link, sample, seed, run_arguments("sweep", words))


def validate(
    measurements: Names = (), *, hw: Names = (), net: Names = (), stack: Names = (), source: Names = (), split: Names = (),
    metric: Names = (), disturbed: bool = False, limit: int | str | None = None, by: Names = ("source", "quantity"),
    fidelity: str = "analytical",
    baseline: Names = ("roofline", "constants"), without: Names = (), calibration: Any = None,
) -> Validation:  # fmt: skip
    """Predictions beside published measurements, or beside those of your files, as `archsim validate`."""
    from dataclasses import replace

    from archsim.api.arguments import calibration_of, whole
    from archsim.evidence.readers import data_hash, read_files
    from archsim.validation.evaluation import validate as scored
    from archsim.validation.selection import Filters, device_files, selected_rows, settings_of

    def listed(name: str, value: Names) -> list[str]:
        return texts(name, value) if value else []

    files, devices = listed("measurements", measurements), listed("hw", hw)
    most = None if limit is None else whole("limit", limit)
    if most is not None and most < 1:
        raise ArgumentError(f"limit: {limit!r} is less than 1")
    filters = Filters(hw=devices, net=listed("net", net), stack=listed("stack", stack), source=listed("source", source),
                      split=listed("split", split), metric=listed("metric", metric), disturbed=disturbed)  # fmt: skip
    cases, skips = read_files(files, device_files(devices, files))
    settings = settings_of(
        cases, by=listed("by", by), fidelity=text("fidelity", fidelity), baseline=listed("baseline", baseline),
        without=listed("without", without), calibration=None if calibration is None else calibration_of(calibration),
    )  # fmt: skip
    cases, skips = selected_rows(cases, skips, filters)
    return replace(scored(cases[:most], skips, settings), data=data_hash(files))


def _quiet(text: str) -> None:
    """Progress that nobody sees."""
