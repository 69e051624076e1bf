"""`archsim compare`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import click

from archsim.base.writer import OutputFile
from archsim.cli.no_effect import tell_without_effect
from archsim.cli.options import choices, names, setting_options_of_batches
from archsim.cli.output import write
from archsim.cli.vocabulary import HWS, csv_option, html_option, json_option, one_form

COLUMNS = (
    "hardware", "stack", "clock_hz", "latency_s", "throughput_per_s", "power_w", "energy_j", "throughput_per_w",
    "memory_bytes", "fits",
)  # fmt: skip


@click.command("compare")
@click.option("--net", default="alexnet", show_default=True, help="A shipped network or the path of a trace file.")
@HWS
@setting_options_of_batches
@click.option("--by", default="speed", show_default=True, type=click.Choice(["speed", "watt", "dollar"]),
              help="Sort by speed, speed per watt, or speed per dollar of the launch price.")  # fmt: skip
@click.option("--correlation", type=click.FloatRange(0.0, 0.99), default=0.0, show_default=True,
              help="Correlation of the errors of two predictions; measured GPUs: 0.8 with one stack, 0.1 with two.")  # fmt: skip
@click.option("--copies/--no-copies", default=None,
              help="Include copying inputs to a GPU and results back; default for several batches on CPUs and GPUs.")  # fmt: skip
@json_option("Print a JSON list of estimates; an object for several batches.")
@csv_option("Print one CSV row per device and batch.")
@html_option()
def command(
    net: str, hw: str, batch_text: str, by: str, correlation: float, copies: bool | None, as_json: bool, as_csv: bool,
    html: OutputFile | None, **given: Any,
) -> None:  # fmt: skip
    """Rank several devices on one network: by speed, per watt and per dollar, with the probability of the order.

    For a range of batches: time per sample, the largest batch that fits, and the batch from which on a GPU overtakes a CPU,
    with copies between host and device. --threads applies to the CPUs among the devices. Without --stack each device
    runs its own default stack.

    \b
    Examples:
      archsim compare --net alexnet --hw tegra_x1,gtx_1080,i7_6700k --batch 16
      archsim compare --net vgg_16 --hw tesla_k40,titan_x_maxwell,gtx_1080 --batch 16 --task forward_backward --csv
      archsim compare --net alexnet --hw i7_6700k,gtx_1080 --batch 1:256:x2
    """
    from archsim.study.batches import batches_of

    one_form(as_json, as_csv)
    devices = list(dict.fromkeys(names(hw)))
    if not devices:
        raise click.UsageError("--hw names no device")
    batches = batches_of(batch_text)
    field = ComparedDevices(net, devices, choices(**given))
    if copies is None:
        copies = len(batches) > 1 and field.mixed
    if len(batches) == 1:
        _one_batch(field, batches[0], copies, by, correlation, as_json, as_csv, html)
    else:
        _many_batches(field, batches, copies, correlation, as_json, as_csv, html)


class ComparedDevices:
    """The devices of a comparison and what each is asked; estimates are made once for each device and batch."""

    def __init__(self, net: str, devices: Sequence[str], arguments: dict[str, Any]) -> None:
        from archsim.estimation.request import find_device

        self.net, self.arguments, self._times = net, arguments, dict[tuple[str, int, bool], float]()
        self._threads = arguments.pop("threads")
        self._specs = {name: find_device(name, None) for name in devices}
        ids = {spec.identity.id: name for name, spec in self._specs.items()}  # one device may have been named twice
        self.devices = list(ids.values())
        self._by_id = ids

    @property
    def mixed(self) -> bool:
        """Whether there are both CPUs and GPUs."""
        return len({self._specs[name].kind for name in self.devices}) > 1

    def request(self, name: str, batch: int) -> Any:
        """The request of one device, by the name it was given."""
        from archsim.estimation.request import make_request

        threads = self._threads if self._specs[name].kind == "cpu" else None
        return make_request(self.net, name, batch=batch, threads=threads, **self.arguments)

    def contender(self, name: str, batch: int, copies: bool) -> Any:
        """The estimate of one device."""
        from archsim.study.ranking import contender

        whatif = any(self.arguments.get(name) for name in ("settings", "scales", "seq_len"))
        return contender(self.request(name, batch), copies, references=not whatif)

    def time(self, identity: str, batch: int, copies: bool) -> float:
        """The latency [s] of the device with this id."""
        from archsim.estimation.pipeline import run
        from archsim.study.ranking import result_time, with_host_inputs

        key = identity, batch, copies
        if key not in self._times:
            request = self.request(self._by_id[identity], batch)
            shown = with_host_inputs(request) if copies else request
            self._times[key] = float(run(shown).latency_s[0]) + (result_time(request) if copies else 0.0)
        return self._times[key]


def _one_batch(
    field: ComparedDevices, batch: int, copies: bool, by: str, correlation: float, as_json: bool, as_csv: bool,
    html: OutputFile | None,
) -> None:  # fmt: skip
    import json

    from archsim.report.compare import comparison_text
    from archsim.report.compare_data import comparison_record
    from archsim.study.ranking import CRITERIA, rank

    contenders = [field.contender(name, batch, copies) for name in field.devices]
    rankings = sorted((rank(contenders, c, correlation) for c in CRITERIA), key=lambda r: r.criterion.name != by)
    first = rankings[0].order
    _warn_without_effect(contenders)
    ordered = [*first, *sorted((c for c in contenders if c not in first), key=lambda c: c.latency_s)]
    if html is not None:
        from archsim.report.compare_page import comparison_page

        write(html, comparison_page(ordered, rankings))
    if as_json:
        click.echo(json.dumps(comparison_record(ordered, rankings), indent=2, allow_nan=False))
    elif as_csv:
        click.echo(_csv(ordered), nl=False)
    else:
        click.echo(comparison_text(ordered, rankings))


def _many_batches(
    field: ComparedDevices, batches: Sequence[int], copies: bool, correlation: float, as_json: bool, as_csv: bool,
    html: OutputFile | None,
) -> None:  # fmt: skip
    import json

    from archsim.cli.progress import Progress
    from archsim.report.compare import curves_text
    from archsim.report.compare_data import curves_record
    from archsim.study.batches import batch_curve
    from archsim.study.crossover import crossings

    asked = [field.request(name, batch) for name in field.devices for batch in batches]
    tell_without_effect(asked, beyond="link." if copies else "")
    with Progress() as tell:
        points = []
        for name in field.devices:
            row = []
            for batch in batches:
                tell(f"{name}, batch {batch}")
                row.append(field.contender(name, batch, copies))
            points.append(row)
        curves = [batch_curve(row) for row in points]
        found = [
            crossing for a, b in combinations(curves, 2)
            for crossing in crossings(a, b, lambda name, batch: field.time(name, batch, copies), correlation)
        ]  # fmt: skip
        pays = _payoffs(field, batches) if field.mixed else []
    if html is not None:
        from archsim.report.compare_page import curves_page

        write(html, curves_page(curves, found, pays))
    if as_json:
        click.echo(json.dumps(curves_record(curves, found, pays), indent=2, allow_nan=False))
    elif as_csv:
        click.echo(_csv([p for row in points for p in row]), nl=False)
    else:
        click.echo(curves_text(curves, found, pays))


def _payoffs(field: ComparedDevices, batches: Sequence[int]) -> list[Any]:
    """For each pair of a CPU and a GPU, the ops of both at each batch, data in place."""
    from archsim.estimation.estimate import estimate_of
    from archsim.study.crossover import payoffs

    requests = {name: [field.request(name, batch) for batch in batches] for name in field.devices}
    estimates = {name: [estimate_of(request, references=False) for request in row] for name, row in requests.items()}
    kinds = {name: row[0].spec.kind for name, row in requests.items()}
    found = []
    for home in (name for name, kind in kinds.items() if kind == "cpu"):
        for guest in (name for name, kind in kinds.items() if kind == "gpu"):
            ops = [request.trace.ops for request in requests[guest]]
            rows = payoffs(estimates[home], estimates[guest], ops, requests[guest][0].spec.device)
            found.append((requests[home][0].spec.identity.id, requests[guest][0].spec.identity.id, rows))
    return found


def _csv(contenders: Sequence[Any]) -> str:
    from archsim.report.data import rows_as_csv

    own = ("latency_s", "throughput_per_s", "energy_j", "throughput_per_w")  # these may hold copies
    head = (*COLUMNS, "batch", "price_usd", "throughput_per_usd")
    rows = [
        [*(getattr(c if name in own else c.estimate, name) for name in COLUMNS), c.estimate.batch, c.price_usd,
         c.throughput_per_usd]
        for c in contenders
    ]  # fmt: skip
    return rows_as_csv(head, rows)


def _warn_without_effect(contenders: Sequence[Any]) -> None:
    for c in contenders:
        for text in c.estimate.warnings:
            if "changes no output" in text:
                click.echo(f"archsim: {c.name}: {text}", err=True)
