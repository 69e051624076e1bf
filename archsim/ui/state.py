"""What the page shows, as the text of its address: the whole of it stands in the URL, so that it can be sent and reloaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from urllib.parse import parse_qsl, urlencode

from archsim.base.errors import ArgumentError, UnknownName
from archsim.base.units import COUNT, TEXT
from archsim.device.spec import Spec, keys
from archsim.estimation.result import Estimate
from archsim.study.whatif import Change, change

CHOICES = ("task", "stack", "precision", "batch")  # hold before and after; empty is the default
TUNED = ("clock", "power_limit", "threads")  # arguments of an estimate that are changed as values of a device are
LONGEST, MOST = 16_000, 300  # characters of an address, and fields in it
MOST_PINS = 6
DEFAULT = "net=resnet_50&hw=gtx_1080"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageState:
    """A network on a device with what is changed of it; `pins` are the states of other variants, as queries."""

    net: str
    hw: str
    choices: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    pins: tuple[str, ...] = ()

    @property
    def spec(self) -> Spec:
        """The device before the change."""
        from archsim.device.catalog import find

        return find(self.hw)

    @property
    def query(self) -> str:
        """The state as the query of an address."""
        pairs = [("net", self.net), ("hw", self.hw), *self.choices.items(), *self.settings.items()]
        return urlencode([*pairs, *(("pin", pin) for pin in self.pins)])

    @property
    def alone(self) -> PageState:
        """The state without the other variants."""
        return replace(self, pins=())

    @property
    def words(self) -> tuple[str, ...]:
        """What is changed, one by one."""
        return tuple([f"{key} = {value}" for key, value in self.settings.items()])


@cache
def known_nets() -> tuple[str, ...]:
    """The networks that the page offers."""
    from archsim.trace.file import names

    return tuple(names())


@cache
def known_devices() -> tuple[str, ...]:
    """The devices that the page offers."""
    from archsim.device.catalog import names

    return tuple(names())


def read_state(query: str) -> PageState:
    """The state of a query. Names of files are none: only what is shipped can be asked for.

    Raises ArgumentError or UnknownName for anything that is no state.

    >>> read_state("net=alexnet&hw=tegra_x1&memory.bandwidth=51.2+GB%2Fs").words
    ('memory.bandwidth = 51.2 GB/s',)
    """
    if len(query) > LONGEST:
        raise ArgumentError(f"the address has {len(query)} characters; at most {LONGEST} are read")
    found: dict[str, str] = {}
    pins: list[str] = []
    for name, value in _pairs(query or DEFAULT):
        if name == "pin":
            pins.append(value)
        elif name in found:
            raise ArgumentError(f"the address gives {name} twice")
        else:
            found[name] = value
    if len(pins) > MOST_PINS:
        raise ArgumentError(f"{len(pins)} variants are pinned; the page compares at most {MOST_PINS}: remove some")
    for pin in pins:
        read_state(pin) if "pin=" not in pin else _refuse("a pinned variant has pinned variants of its own")
    net, hw = (_known(what, found.pop(name, ""), names) for what, name, names in
               (("network", "net", known_nets()), ("device", "hw", known_devices())))  # fmt: skip
    choices = {name: found.pop(name) for name in CHOICES if name in found}
    _check_stack(choices.get("stack"))
    state = PageState(net=net, hw=hw, choices=choices, settings=found, pins=tuple(dict.fromkeys(pins)))
    _check_settings(state)
    return state


def _pairs(query: str) -> list[tuple[str, str]]:
    """Names with values that are not empty: a form sends its empty fields as well."""
    try:
        pairs = parse_qsl(query, max_num_fields=MOST, errors="strict", keep_blank_values=False)
    except ValueError as error:
        raise ArgumentError(f"the address cannot be read: {error}") from None
    return [(name, value.strip()) for name, value in pairs if value.strip()]


def _refuse(why: str) -> None:
    raise ArgumentError(why)


def _known(what: str, name: str, names: tuple[str, ...]) -> str:
    if name not in names:
        raise UnknownName(what, name, names)
    return name


def _check_stack(name: str | None) -> None:
    from archsim.stack.catalog import names

    if name is not None:
        _known("stack", name, names())


def _check_settings(state: PageState) -> None:
    """Every value that is changed is a numeric key of the device, or a clock, power limit or thread count."""
    kind = state.spec.kind
    numbers = [key for key, unit, _ in keys(kind) if unit.unit != TEXT]
    for key in state.settings:
        if key not in numbers and key not in TUNED:
            raise UnknownName(f"{kind} key", key, [*numbers, *TUNED, *CHOICES])


def estimated(state: PageState, changed: bool = True) -> Estimate:
    """The estimate of a state, or of the device before the change. Raises ArchsimError."""
    from archsim.api.functions import estimate

    words: dict[str, str] = dict(state.choices)
    if changed:
        words |= {key: value for key, value in state.settings.items() if key in TUNED}
    of_device = {key: value for key, value in state.settings.items() if key not in TUNED} if changed else {}
    return estimate(state.net, state.hw, set=of_device, **words)  # type: ignore[arg-type]


def change_of(state: PageState) -> Change:
    """Before and after. Raises ArchsimError."""
    return change(estimated(state, changed=False), estimated(state), state.words)


def plain(value: float, unit: str) -> str:
    """A number as `--set` takes it.

    >>> plain(2e9, "1"), plain(5.12e10, "B/s")
    ('2000000000', '51.2 GB/s')
    """
    from archsim.base.units import show

    return f"{value:.12g}" if unit == COUNT else show(value, unit, 6)
