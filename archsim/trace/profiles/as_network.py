"""A profile as a network: what PyTorch's profiler or onnxruntime recorded, in the place of a model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from archsim.base.errors import Unsupported
from archsim.trace.formats import unknown_symbol
from archsim.trace.profiles.network import ProfiledNetwork, network_of
from archsim.trace.profiles.reader import ONNXRUNTIME
from archsim.trace.profiles.reader import read as profile_in
from archsim.trace.profiles.record import Profile
from archsim.trace.readers.mapping import MAPPED, MappedOperator
from archsim.trace.trace import Trace

LEFT_OUT = "left out"
CHROME = re.compile(rb'"traceEvents"\s*:|\A\s*\[\s*\{[^}]*"ph"\s*:')  # an object with events, or a list of them


def begins_as_profile(head: bytes) -> bool:
    """Whether a JSON file begins as a profile with the calls of a framework does.

    >>> begins_as_profile(b'{"schemaVersion": 1, "traceEvents": ['), begins_as_profile(b'{"n_embd": 768}')
    (True, False)
    """
    return bool(CHROME.search(head) or ONNXRUNTIME.match(head))


def read(path: Path, sizes: Mapping[str, int]) -> Trace:
    """The network of a profile, whose sizes are all fixed.

    Raises MissingFile, InputError, Unsupported where no shapes were recorded, ArgumentError for a size that is asked for.
    """
    return _network(path, sizes)[1].trace


def of_profile(path: Path, sizes: Mapping[str, int]) -> tuple[Trace, list[MappedOperator]]:
    """The network, and the operators of the profile with what became of them, those with the most calls first."""
    profile, network = _network(path, sizes)
    ops = {place for places in network.calls.values() for place in places}
    why = dict(network.left_out)
    count = Counter((call.operator, MAPPED if place in ops else LEFT_OUT, why.get(place, ""))
                    for place, call in enumerate(profile.calls))  # fmt: skip
    return network.trace, [MappedOperator(name, calls, status, said) for (name, status, said), calls in count.most_common()]


def _network(path: Path, sizes: Mapping[str, int]) -> tuple[Profile, ProfiledNetwork]:
    profile = profile_in(path)
    if not profile.calls:
        raise Unsupported(f"{path}: holds no network: kernels alone; `archsim profile --net` sets them beside one")
    network = network_of(profile)
    for name in sizes:
        raise unknown_symbol(path, name, network.trace.free_symbols)
    return profile, network
