"""`Space`: the points of a sweep by position, any part of which can be made without the rest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archsim.base.arguments import given_of
from archsim.base.errors import Unsupported
from archsim.base.version import __version__
from archsim.cost.cost import Array
from archsim.estimation.hardware import find_device
from archsim.estimation.pipeline import lowered_of
from archsim.estimation.request import Request, make_request
from archsim.study.axis import BadAxis, Coupling, KnobAxis, axis_of, coupling_of
from archsim.study.knob import CHOICES, meaning

ROUNDS = 4  # a Feistel network of four rounds with random functions is a random permutation (Luby and Rackoff 1988)
MOST = 1 << 52  # points; positions on an axis are doubles
Words = NDArray[np.uint64]


def hypercube_positions(start: int, stop: int, count: int, seed: int, axis: str) -> Array:
    """Positions on an axis of the points from `start` to `stop` of `count`, each in [0, 1), [stop - start].

    >>> sorted(np.floor(hypercube_positions(0, 5, 5, 0, "clock") * 5).tolist())  # one point in each fifth
    [0.0, 1.0, 2.0, 3.0, 4.0]
    """
    position = np.arange(start, stop, dtype=np.uint64)
    key = _key(seed, axis)
    part = permuted(position, count, key)
    inside = (_mixed(position ^ np.uint64(key)) >> np.uint64(11)).astype(float) * 2.0**-53
    return np.minimum((part.astype(float) + inside) / count, np.nextafter(1.0, 0.0))


def permuted(position: Words, count: int, key: int) -> Words:
    """A permutation of 0 ... count - 1, selected by `key`, at the given positions, [D].

    >>> sorted(permuted(np.arange(5, dtype=np.uint64), 5, key=1).tolist())
    [0, 1, 2, 3, 4]
    """
    half = max(1, ((count - 1).bit_length() + 1) // 2)
    found = _network(position, half, key)
    while (beyond := found >= count).any():
        found[beyond] = _network(found[beyond], half, key)
    return found


def _network(words: Words, half: int, key: int) -> Words:
    """A Feistel network on words of two halves of `half` bits."""
    mask, shift = np.uint64((1 << half) - 1), np.uint64(half)
    left, right = words >> shift, words & mask
    for turn in range(ROUNDS):
        left, right = right, left ^ (_mixed(right ^ np.uint64((key + turn * 0x9E3779B97F4A7C15) % 2**64)) & mask)
    return np.asarray((left << shift) | right)


def _mixed(words: Words) -> Words:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(words ^ (words >> np.uint64(31)))


def _key(seed: int, axis: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}:{axis}".encode()).digest()[:8], "little")


CHUNK = 4096  # points computed and stored together


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Consecutive points of one base, from `start` to `stop`, numbered over the whole space."""

    base: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """The points of a sweep: for each base (network and device) the grid of its axes, or `sample` points of a Latin hypercube.

    `bases` are the arguments of `make_request` that differ, `asked` those that all bases share. Axes that select kernels (batch,
    precision, ...) vary slowest, whatever their position, so that points with the same kernels are neighbours.
    """

    bases: tuple[Mapping[str, Any], ...]
    asked: Mapping[str, Any] = field(default_factory=dict)
    axes: tuple[KnobAxis, ...] = ()
    links: tuple[Coupling, ...] = ()
    sample: int = 0
    seed: int = 0

    @property
    def ordered(self) -> tuple[KnobAxis, ...]:
        """The axes from the slowest to the fastest."""
        return tuple(sorted(self.axes, key=lambda axis: axis.knob not in CHOICES))

    @property
    def each(self) -> int:
        """Points of one base."""
        return self.sample or prod(len(axis.values) for axis in self.axes)

    @property
    def count(self) -> int:
        """Points of all bases."""
        return self.each * len(self.bases)

    @property
    def knobs(self) -> tuple[str, ...]:
        """The columns of its points: the axes in the given order, then the coupled keys."""
        return (*(axis.knob for axis in self.axes), *(link.knob for link in self.links))

    @property
    def whole(self) -> frozenset[str]:
        """The axes of whole numbers."""
        return frozenset(axis.knob for axis in self.axes if axis.whole)

    @property
    def parts(self) -> int:
        """Number of parts."""
        return len(self.bases) * -(-self.each // CHUNK)

    def part(self, number: int) -> Part:
        """Part `number` of the space."""
        base, inside = divmod(number, -(-self.each // CHUNK))
        start = base * self.each
        return Part(base=base, start=start + inside * CHUNK, stop=start + min(self.each, (inside + 1) * CHUNK))

    def part_at(self, position: int) -> int:
        """The number of the part that begins at a position; at the end, the number of parts."""
        base, inside = divmod(position, self.each)
        return base * -(-self.each // CHUNK) + inside // CHUNK

    def request(self, base: int, other: Mapping[str, Any] | None = None) -> Request:
        """The request of a base, with `other` arguments if given. Raises what `make_request` raises."""
        return make_request(**{**self.asked, **self.bases[base], **(other or {})})

    def columns(self, part: Part, request: Request) -> dict[str, Array]:
        """The knobs of the points of a part, each [D]; `request` is that of its base."""
        start, stop = (position - part.base * self.each for position in (part.start, part.stop))
        if self.sample:
            found = {
                axis.knob: axis.drawn(hypercube_positions(start, stop, self.sample, self.seed, axis.knob)) for axis in self.axes
            }
        else:
            found = self._grid(start, stop)
        for link in self.links:
            found[link.knob] = link.values(request, found[link.follows])
        return found

    def _grid(self, start: int, stop: int) -> dict[str, Array]:
        position, found = np.arange(start, stop), {}
        for axis in reversed(self.ordered):
            position, index = np.divmod(position, len(axis.values))
            found[axis.knob] = axis.picked(index)
        return {axis.knob: found[axis.knob] for axis in self.axes}

    def checked(self) -> list[Request]:
        """The requests of all bases, after checking that every knob exists and, unless names are varied, that every base can run.

        Raises BadAxis, UnknownName, or what `make_request` raises.
        """
        _check_shape(self)
        requests = [self.request(base) for base in range(len(self.bases))]
        for request in requests:
            if not any(axis.words for axis in self.axes):
                lowered_of(request)
            for knob in self.knobs:
                if knob not in CHOICES:
                    meaning(request.spec.kind, knob)
            for link in self.links:
                link.check(request)
        for axis in self.axes:
            for value in axis.values if axis.words else ():
                with suppress(Unsupported):  # reported as the problem of its points
                    self.request(0, {axis.knob: value})
        return requests

    def record(self, requests: list[Request]) -> dict[str, Any]:
        """Everything that decides the results, as JSON: the definition, and the hashes of devices, networks, stacks and
        constants.
        """
        shared = {key: value for key, value in self.asked.items() if key != "calibration" and value not in (None, {})}
        return {
            "version": __version__,
            "numpy": np.__version__,  # with another one the last digits may differ
            "asked": shared,
            "bases": [_base_record(request) for request in requests],
            "vary": [f"{axis.knob}={axis.written}" for axis in self.axes],
            "link": [link.written for link in self.links],
            "sample": self.sample,
            "seed": self.seed if self.sample else 0,
            "chunk": CHUNK,
        }


def _check_shape(space: Space) -> None:
    knobs = list(space.knobs)
    asked = given_of(space.asked)
    fixed = {*asked, *asked.get("settings", ()), *asked.get("scales", ()), *(("clock",) if "power_mode" in asked else ())}
    fixed -= {"batch"} if asked.get("batch") == 1 else set()
    for knob in knobs:
        if knobs.count(knob) > 1:
            raise BadAxis(f"{knob}: is varied twice")
        if knob in ("net", "hw"):
            raise BadAxis(f"{knob}: name several with --{knob}, separated by commas")
        if knob in fixed:
            raise BadAxis(f"{knob}: is set and varied; choose one")
    if space.sample and not space.axes:
        raise BadAxis("a sample needs something that varies, like --vary memory.bandwidth=100GB/s:1TB/s:log")
    open_ended = [axis.knob for axis in space.axes if not axis.values]
    if open_ended and not space.sample:
        raise BadAxis(f"{open_ended[0]}: a range without steps belongs to --sample; "
                      "end it with a step, a factor like x2, or a number like 50log or 20lin")  # fmt: skip
    if space.sample > MOST:
        raise BadAxis(f"{space.sample} points are more than {MOST}, the most that a sample can have")


def _base_record(request: Request) -> dict[str, Any]:
    return {
        "network": request.network, "hardware": request.spec.identity.id, "stack": request.stack.id,
        "trace_hash": request.trace_digest, "spec_hash": request.spec.digest, "stack_hash": request.stack.digest,
        "calibration": f"{request.calibration.version}+{request.calibration.digest}",
    }  # fmt: skip


def digest(record: Mapping[str, Any]) -> str:
    """A hash of a record."""
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:16]


def space_of(
    nets: Sequence[str], hws: Sequence[str], vary: Sequence[str], links: Sequence[str], *, sample: int, seed: int,
    arguments: dict[str, Any],
) -> Space:  # fmt: skip
    """The points of a sweep over networks, devices and the values of knobs; `vary` and `links` as KEY=VALUES and KEY=KNOB.

    One device by two names is one; threads go to CPUs only.
    """
    specs = {name: find_device(name, None) for name in hws}
    first: dict[tuple[str, str], str] = {}
    for name, spec in specs.items():
        first.setdefault((spec.identity.id, spec.digest), name)
    kinds = {name: specs[name].kind for name in first.values()}
    asked = dict(arguments)
    threads = asked.pop("threads", None)
    axes = tuple([axis_of(text, next(iter(kinds.values()))) for text in vary])
    bases = [{"net": n, "hw": h} | ({"threads": threads} if kind == "cpu" else {}) for n in nets for h, kind in kinds.items()]
    varied = tuple([axis.knob for axis in axes])
    couplings = tuple([coupling_of(text, varied) for text in links])
    return Space(bases=tuple(bases), asked=asked, axes=axes, links=couplings, sample=sample, seed=seed)
