"""Several devices, each with one or several stacks, asked the same: estimates, exclusions, rankings, curves over batches."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any, TypeVar

from archsim.base.errors import ArchsimError, ArgumentError, Unsupported, one_of
from archsim.base.record import Answer
from archsim.device.spec import Spec
from archsim.device.variant import called
from archsim.estimation.estimate import estimate_of
from archsim.estimation.hardware import find_device
from archsim.estimation.request import Request, make_request
from archsim.stack import catalog, choose
from archsim.study.batches import BatchCurve, Crossing, Payoff, batch_curve, crossings, payoffs
from archsim.study.contender import Contender, contender
from archsim.study.price import Price, Usage, Workload
from archsim.study.ranking import CRITERIA, Criterion, Ranking, rank
from archsim.study.stack_change import StackChange, stack_change


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrant:
    """A device with a stack, before it is asked: `name` and `stack` as given, `device` and `called` as they are shown."""

    name: str
    stack: str | None
    stack_id: str | None
    spec: Spec
    device: str
    called: str


def stacks_meant(stacks: Sequence[str], specs: Sequence[Spec]) -> dict[str, tuple[str | None, str]]:
    """The stacks that names mean on any of the devices: id -> (name for a request, kind of device).

    A framework alone may mean several stacks, which are all asked of the devices of their kind.
    """
    found: dict[str, tuple[str | None, str]] = {}
    for name in stacks:
        for spec in specs:
            stack = choose.chosen(name, spec.kind, spec.identity.default_stack)
            meant = catalog.find(stack)
            if stack == name or meant.kind in ("any", spec.kind) or len({s.kind for s in specs}) == 1:
                found.setdefault(meant.id, (stack, meant.kind))
    return found


def entrants(specs: dict[str, Spec], choices: Mapping[str, tuple[str | None, str]]) -> list[Entrant]:
    """Every device with every stack of its kind, each once, under names that tell them apart.

    A device for whose kind no stack was named is asked all of them, and says itself why it cannot.
    """
    once = {(spec.identity.id, spec.digest): name for name, spec in reversed(specs.items())}
    kept = sorted(once.values(), key=list(specs).index)
    own = [called(specs[name], short=True) for name in kept]
    shown = {name: c if own.count(c) == 1 else f"{c} ({name})" for name, c in zip(kept, own, strict=True)}
    asked = choices or {"": (None, "any")}
    own_kind = {name: {i: one for i, one in asked.items() if one[1] in ("any", specs[name].kind)} for name in kept}
    return [
        Entrant(name=name, stack=stack, stack_id=identity or None, spec=specs[name], device=shown[name],
                called=shown[name] if len(choices) < 2 else f"{shown[name]} {identity}")
        for name in kept for identity, (stack, _) in (own_kind[name] or asked).items()
    ]  # fmt: skip


T = TypeVar("T")
Tell = Callable[[str], None]
MOST_CROSSED = 8  # devices of which every pair is looked at; of more, those that are the fastest at some batch
MOST_PAYOFFS = 6  # pairs of a CPU and a GPU whose ops are compared


@dataclass(frozen=True, slots=True, kw_only=True)
class Excluded:
    """An entrant that cannot run what is asked, with the reason."""

    hardware: str
    stack: str | None
    cannot_run: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(Answer):
    """One network at one batch.

    contenders: those whose memory holds the work, in the order of the first ranking
    unfit: those whose memory does not
    excluded: those that cannot run it
    rankings: one for each criterion, the one to sort by first
    stacks: those that were asked for; none for the default of each device
    changes: where one device has several stacks that run it, each of them beside the first
    """

    contenders: tuple[Contender, ...]
    unfit: tuple[Contender, ...]
    excluded: tuple[Excluded, ...]
    rankings: tuple[Ranking, ...]
    stacks: tuple[str, ...] = ()
    workload: Workload | None = None
    changes: tuple[StackChange, ...] = ()

    @property
    def all(self) -> tuple[Contender, ...]:
        """All that can run it, those that do not fit last."""
        return (*self.contenders, *self.unfit)

    @property
    def network(self) -> str:
        """The network."""
        return self.all[0].estimate.network


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveComparison(Answer):
    """One network over batches.

    best: a comparison for each batch
    pays: the ops of each pair of a CPU and a GPU
    notes: what was left out because of the number of devices
    """

    curves: tuple[BatchCurve, ...]
    crossings: tuple[Crossing, ...]
    pays: tuple[tuple[str, str, Sequence[Payoff]], ...]
    excluded: tuple[Excluded, ...]
    best: tuple[Comparison, ...]
    notes: tuple[str, ...] = ()

    @property
    def contenders(self) -> tuple[Contender, ...]:
        """Those that hold the work at any batch."""
        return tuple([c for one in self.best for c in one.contenders])

    @property
    def network(self) -> str:
        """The network."""
        return self.curves[0].points[0].estimate.network


class ComparedDevices:
    """The devices of a comparison and what each is asked.

    arguments: those of `make_request` but network, device, batch and stack; threads go to CPUs only
    prices: by id of the device, in place of those of the specs
    by: the name of the criterion that comes first
    """

    def __init__(
        self, devices: Sequence[str], stacks: Sequence[str] = (), arguments: Mapping[str, Any] | None = None,
        prices: Mapping[str, Price] | None = None, usage: Usage | None = None, workload: Workload | None = None,
        by: str = "speed",
    ) -> None:  # fmt: skip
        one_of("criterion", by, [criterion.name for criterion in CRITERIA])
        self.arguments = dict(arguments or {})
        self._threads = self.arguments.pop("threads", None)
        self.prices, self.usage, self.workload, self.by = dict(prices or {}), usage or Usage(), workload, by
        changes = self.arguments.get("settings"), self.arguments.get("scales")
        specs = {name: find_device(name, *changes) for name in dict.fromkeys(devices)}
        meant = stacks_meant(stacks, list(specs.values()))
        self.stacks = tuple(meant)
        self.entrants = entrants(specs, meant)

    def requests(self, c: CurveComparison) -> list[Request]:
        """What the entrants of a comparison over batches were asked."""
        live = {curve.name: curve.batches for curve in c.curves}
        return [self.request(c.network, e, batch) for e in self.entrants for batch in live.get(e.called, ())]

    @property
    def mixed(self) -> bool:
        """Whether there are devices of several kinds."""
        return len({entrant.spec.kind for entrant in self.entrants}) > 1

    @property
    def criteria(self) -> tuple[Criterion, ...]:
        """Those by which devices are ranked: the ones that depend on use only if something was said of the use."""
        rented = any(p.usd_per_h is not None for p in self.prices.values())
        asked = self.by == "cost" or self.usage.given or self.workload is not None or rented
        return tuple([c for c in CRITERIA if asked or not c.usage])

    def request(self, net: str, entrant: Entrant, batch: int | None) -> Request:
        """What one entrant is asked."""
        return make_request(net, entrant.name, batch=batch, stack=entrant.stack, **self.asked(entrant))

    def asked(self, entrant: Entrant) -> dict[str, Any]:
        """The arguments of one entrant besides network, batch and stack."""
        return {**self.arguments, "threads": self._threads if entrant.spec.kind == "cpu" else None}

    def contender(self, net: str, entrant: Entrant, batch: int | None, copies: bool) -> Contender:
        """The estimate of one entrant, with its price. Raises what `make_request` raises."""
        made = contender(
            self.request(net, entrant, batch), copies, references=self.arguments.get("seq_len") is None,
            device=entrant.device, called=entrant.called,
            price=self.prices.get(entrant.spec.identity.id), usage=self.usage,
        )  # fmt: skip
        _ = made.fits  # what cannot be computed is found out here
        return made

    def at(self, net: str, batch: int | None, copies: bool, correlation: float | None, tell: Tell) -> Comparison:
        """All entrants at one batch; without one at 1, or at what the file says. Raises the reason if none can run it."""
        rows, excluded = self._rows(net, [batch], copies, tell)
        found = self.ranked([row[0] for row in rows], excluded, correlation)
        return replace(found, changes=self._changes(net, batch, {row[0].estimate.stack for row in rows}))

    def _changes(self, net: str, batch: int | None, ran: Collection[str]) -> tuple[StackChange, ...]:
        """From the first stack to each other one, where stacks of a single device ran."""
        named = [entrant for entrant in self.entrants if entrant.stack is not None and entrant.stack_id in ran]
        if len({entrant.name for entrant in named}) != 1:
            return ()
        first, *others = named
        return tuple([stack_change(net, first.name, str(first.stack), str(other.stack), batch=batch, **self.asked(first))
                      for other in others])  # fmt: skip

    def over(
        self, net: str, batches: Sequence[int], copies: bool, correlation: float | None, tell: Tell, ops: bool = True
    ) -> CurveComparison:
        """All entrants over batches, with `ops` also op by op. Raises the reason if none can run all of them."""
        rows, excluded = self._rows(net, batches, copies, tell)
        curves = [batch_curve(row) for row in rows]
        known = {entrant.called: entrant for entrant in self.entrants}
        best = [self.ranked([row[i] for row in rows], (), correlation) for i in range(len(batches))]
        fastest = {r.order[0].name for c in best for r in c.rankings if r.criterion.name == "speed" and r.order}
        crossed = curves if len(curves) <= MOST_CROSSED else [curve for curve in curves if curve.name in fastest]
        tell(f"{net}: crossings")
        found = [
            crossing for a, b in combinations(crossed, 2)
            for crossing in crossings(a, b, lambda name, batch: self.contender(net, known[name], batch, copies).latency_s,
                                      correlation)
        ]  # fmt: skip
        cpus, gpus = ([known[c.name] for c in curves if ops and c.points[0].kind == kind] for kind in ("cpu", "gpu"))
        pairs = list(product(cpus, gpus))
        tell(f"{net}: ops")
        pays = self._payoffs(net, pairs, batches) if len(pairs) <= MOST_PAYOFFS else []
        left = [] if len(crossed) == len(curves) else [
            f"crossings are those of the devices that are the fastest at some batch, as there are more than {MOST_CROSSED}"]
        left += [] if len(pairs) <= MOST_PAYOFFS else [
            f"ops are not compared one by one, as there are more than {MOST_PAYOFFS} pairs of a CPU and a GPU"]
        return CurveComparison(curves=tuple(curves), crossings=tuple(found), pays=tuple(pays), excluded=tuple(excluded),
                               best=tuple(best), notes=tuple(left))  # fmt: skip

    def _rows(
        self, net: str, batches: Sequence[int | None], copies: bool, tell: Tell
    ) -> tuple[list[list[Contender]], list[Excluded]]:
        """A row of contenders over batches for each entrant that can run all of them, and the others."""
        return self.each(net, lambda entrant: [self.contender(net, entrant, batch, copies) for batch in batches], tell)

    def each(self, net: str, ask: Callable[[Entrant], T], tell: Tell) -> tuple[list[T], list[Excluded]]:
        """What entrants answer, and those that cannot run it. Raises the reason if none can."""
        found, excluded, errors = list[T](), list[Excluded](), list[ArchsimError]()
        for i, entrant in enumerate(self.entrants):
            tell(f"{net} on {entrant.called} ({i + 1} of {len(self.entrants)})")
            try:
                found.append(ask(entrant))
            except (Unsupported, ArgumentError) as error:
                errors.append(error)
                excluded.append(Excluded(hardware=entrant.device, stack=entrant.stack_id, cannot_run=str(error)))
        if not found:
            if len(set(map(str, errors))) == 1:
                raise errors[0]
            raise Unsupported(f"nothing to compare on {net}:\n" + "\n".join(map(excluded_line, excluded)))
        return found, excluded

    def ranked(
        self, contenders: Sequence[Contender], excluded: Sequence[Excluded], correlation: float | None
    ) -> Comparison:
        """The contenders in every ranking."""
        rankings = sorted((rank(contenders, c, correlation) for c in self.criteria), key=lambda r: r.criterion.name != self.by)
        placed = rankings[0].order
        others = sorted((c for c in contenders if c.fits and c not in placed), key=lambda c: c.latency_s)
        return Comparison(
            contenders=(*placed, *others), unfit=tuple([c for c in contenders if not c.fits]), excluded=tuple(excluded),
            rankings=tuple(rankings), stacks=self.stacks, workload=self.workload,
        )  # fmt: skip

    def _payoffs(
        self, net: str, pairs: Sequence[tuple[Entrant, Entrant]], batches: Sequence[int]
    ) -> list[tuple[str, str, Sequence[Payoff]]]:
        """For each pair, the ops of both at each batch that fits both, data in place."""
        live = {entrant.called: entrant for pair in pairs for entrant in pair}
        requests = {name: [self.request(net, e, batch) for batch in batches] for name, e in live.items()}
        estimates = {name: [estimate_of(request, references=False) for request in row] for name, row in requests.items()}
        found = list[tuple[str, str, Sequence[Payoff]]]()
        for home, guest in ((a.called, b.called) for a, b in pairs):
            both = [i for i in range(len(batches)) if estimates[home][i].fits and estimates[guest][i].fits]
            there, here = ([row[i] for i in both] for row in (estimates[home], estimates[guest]))
            asked = [requests[guest][i] for i in both]
            rows = payoffs(there, here, [request.trace.ops for request in asked], requests[guest][0].spec.device)
            found.append((home, guest, rows))
        return found


def excluded_line(one: Excluded) -> str:
    """An exclusion as a line."""
    return f"{one.hardware}{'' if one.stack is None else f' with {one.stack}'}: {one.cannot_run}"
