"""One device in a comparison: its estimate with copies, its price, and what its use costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod

from archsim.cost.dispatch import link_rate
from archsim.device.device import Gpu
from archsim.device.variant import first_of
from archsim.estimation.estimate import estimate_of
from archsim.estimation.pipeline import idle_of
from archsim.estimation.request import Request
from archsim.estimation.result import Estimate
from archsim.study.certainty import log_normal
from archsim.study.price import JobTotals, Price, Usage, Workload, hourly_cost, merged, spec_price
from archsim.trace.kind import FORWARD

HOST_ELEMENT = 4  # B, values of inputs and results in host memory
HOUR = 3600.0  # s
MILLION = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One device with one stack in a comparison.

    kind: gpu or cpu
    price: what it costs to buy or to rent; None where nobody has said
    usage: how long and how hard it is used, and what electricity costs
    copies: whether copies between host and device count
    back_s: time of copying the results to the host, where copies count [s]
    idle_w: power while it waits [W]
    device: name of the device where its id does not tell it apart
    called: its name where several contenders are the same device with different stacks
    """

    estimate: Estimate
    kind: str
    price: Price | None
    usage: Usage = field(default_factory=Usage)
    copies: bool
    back_s: float
    idle_w: float
    device: str = ""
    called: str = ""

    @property
    def device_name(self) -> str:
        """The device, without its stack."""
        return self.device or self.estimate.hardware

    @property
    def full_name(self) -> str:
        """The device, with what its own file changes of another one."""
        whole = self.estimate.hardware_name
        return self.device_name if self.device_name.startswith(whole) else whole

    @property
    def name(self) -> str:
        """The device, with its stack where the comparison has several stacks."""
        return self.called or self.device_name

    @property
    def fits(self) -> bool:
        """Whether the memory of the device holds the work."""
        return self.estimate.fits

    @property
    def latency_s(self) -> float:
        """Time of one batch [s], copies included where they count."""
        return self.estimate.latency_s + self.back_s

    @property
    def latency_interval_s(self) -> tuple[float, float]:
        """The interval of the estimate, scaled to the time with copies [s]."""
        low, high = self.estimate.latency_interval_s
        share = self.latency_s / self.estimate.latency_s
        return low * share, high * share

    @property
    def throughput_per_s(self) -> float:
        """Samples per second."""
        return self.estimate.batch / self.latency_s

    @property
    def energy_j(self) -> float:
        """Energy of one batch [J]; during the copy of results the device draws idle power."""
        return self.estimate.energy_j + self.back_s * self.idle_w

    @property
    def throughput_per_w(self) -> float:
        """Samples per joule."""
        return self.estimate.batch / self.energy_j

    @property
    def price_usd(self) -> float | None:
        """The price to buy it [USD]."""
        return None if self.price is None else self.price.usd

    @property
    def throughput_per_usd(self) -> float | None:
        """Samples per second for each dollar of the price."""
        return None if self.price_usd is None else self.throughput_per_s / self.price_usd

    @property
    def hourly_usd(self) -> Mapping[str, float] | None:
        """Cost of an hour of work by part [USD/h]; None without a price."""
        if self.price is None:
            return None
        return hourly_cost(self.price, self.usage, self.energy_j / self.latency_s, self.idle_w)

    @property
    def usd_per_hour(self) -> float | None:
        """Cost of an hour of work [USD/h]."""
        parts = self.hourly_usd
        return None if parts is None else sum(parts.values())

    @property
    def usd_per_million(self) -> float | None:
        """Cost of a million samples [USD]."""
        hourly = self.usd_per_hour
        return None if hourly is None else hourly / HOUR * MILLION / self.throughput_per_s

    @property
    def energy_share_of_cost(self) -> float:
        """The share of the cost that follows the energy of the work, not its time."""
        parts = self.hourly_usd
        return 0.0 if not parts else parts.get("electricity", 0.0) / sum(parts.values())


def contender(
    request: Request, copies: bool, references: bool = True, price: Price | None = None, usage: Usage | None = None,
    device: str = "", called: str = "",
) -> Contender:  # fmt: skip
    """The estimate of a request with its price: that of its spec, unless another is given.

    With `copies` a GPU's inputs come from the host and its results go back.
    """
    shown = with_host_inputs(request) if copies else request
    launch = spec_price(request.spec)
    return Contender(
        estimate=estimate_of(shown, references=references and not copies), kind=request.spec.kind,
        price=launch if price is None else merged(launch, price), usage=usage or Usage(), copies=copies,
        back_s=result_time(request) if copies else 0.0, idle_w=first_of(idle_of(request)), device=device,
        called=called,
    )  # fmt: skip


def with_host_inputs(request: Request) -> Request:
    """The same run with inputs in host memory; no change on a CPU, or on a chip that shares the host's memory."""
    return replace(request, stack=replace(request.stack, inputs="host"))


def result_time(request: Request) -> float:
    """Time of copying the results of an inference to the host [s].

    t = 4 B x values / (link bandwidth x achievable share); values: those of outputs that no other op reads

    >>> from archsim.estimation.request import make_request
    >>> round(1e9 * result_time(make_request("alexnet", "gtx_1080")))  # 1000 probabilities [ns]
    334
    """
    device = request.device
    if not isinstance(device, Gpu) or request.task != "inference":
        return 0.0
    read = {name for op in request.trace.ops for name in op.inputs}
    values = sum(prod(op.shape) for op in request.trace.ops if op.phase == FORWARD and op.name not in read)
    return float(HOST_ELEMENT * values / link_rate(device))


def time_spread(c: Contender) -> tuple[float, float]:
    """Mean and standard deviation of the log of the true time [ln s]; the copy of results adds no uncertainty."""
    return log_normal(*c.latency_interval_s, c.estimate.interval_level)


def energy_spread(c: Contender) -> tuple[float, float]:
    """Mean and standard deviation of the log of the true energy [ln J]; that of the copy of results adds no uncertainty."""
    low, high = c.estimate.energy_interval_j
    share = c.energy_j / c.estimate.energy_j
    return log_normal(low * share, high * share, c.estimate.interval_level)


def job_totals(c: Contender, work: Workload) -> JobTotals:
    """Time, energy and cost of work of a given size: batches x those of one batch."""
    count = work.batches(c.estimate.batch)
    low, high = c.latency_interval_s
    hourly = c.usd_per_hour
    return JobTotals(
        batches=count, time_s=count * c.latency_s, interval_s=(count * low, count * high), energy_j=count * c.energy_j,
        cost_usd=None if hourly is None else count * c.latency_s / HOUR * hourly,
    )  # fmt: skip
