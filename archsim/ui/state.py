"""What the page shows, as the text of its address: the whole of it stands in the URL, so that it can be sent and reloaded."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from urllib.parse import parse_qsl, urlencode

from archsim.base.arguments import ARGUMENTS, SERVED, Argument, chosen
from archsim.base.errors import ArgumentError, UnknownName
from archsim.base.units import COUNT, TEXT, show, show_capacity
from archsim.device import catalog as devices
from archsim.device.spec import Spec, keys
from archsim.generation.plan import engines
from archsim.stack import catalog as stacks
from archsim.trace import file as networks
from archsim.trace.huggingface import catalog as models
from archsim.ui.uploads import SPEC, UploadedFile

LONGEST, MOST = 16_000, 300  # characters of an address, and fields in it
MOST_PINS = 6
AGAIN = "a file of yours is known until the server ends; drop it again"
HELP = "/help"


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One of the pages: what runs on the device, and what is chosen of it besides the device's values.

    arguments: those that the page has, by name; default: what it shows first, as a query
    net: what the network is called; nets: the shipped names
    command: what estimates it; usual: what an estimate is given where nobody says
    about: choices of what is shown, which no estimate takes, with their titles
    """

    path: str
    title: str
    net: str
    arguments: Mapping[str, Argument]
    default: str
    nets: Callable[[], Collection[str]]
    command: str
    usual: Mapping[str, str] = field(default_factory=dict)
    about: Mapping[str, str] = field(default_factory=dict)

    @property
    def choices(self) -> Mapping[str, str]:
        """What holds before and after, empty is the default: name -> title of the field."""
        shown = {row.name: row.title for row in self.arguments.values() if row.page == "field"}
        return {name: title[0].upper() + title[1:] for name, title in (shown | dict(self.about)).items()}

    @property
    def tuned(self) -> tuple[str, ...]:
        """The arguments that are changed as values of a device are."""
        return chosen(lambda row: row.page == "slider", self.arguments.values())

    @property
    def fields(self) -> Mapping[str, str]:
        """Titles of all fields of what runs where."""
        return {"net": self.net, "hw": "Device", **self.choices}


@cache
def language_models() -> tuple[str, ...]:
    """The models that an engine can serve."""
    return tuple(name for name in models.names() if models.find(name).generates)


NETWORKS = View(path="/", title="Networks", net="Network", arguments=ARGUMENTS, about={"layer": "layer shown"},
                nets=networks.names, command="estimate", default="net=resnet_50&hw=gtx_1080")  # fmt: skip
MODELS = View(path="/llm", title="Language models", net="Model", arguments=SERVED, nets=language_models, command="llm",
              usual={row.name: row.usual for row in SERVED.values() if row.usual},
              default="net=llama_3_8b&hw=h100_sxm5_80gb&input=1024&output=256&batch=16")  # fmt: skip
VIEWS = (NETWORKS, MODELS)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageState:
    """What runs on a device with what is changed of it; `pins` are the states of other variants, as queries.

    files: the user's own files, by the names that stand in `net` and `hw`
    """

    view: View = NETWORKS
    net: str
    hw: str
    choices: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    pins: tuple[str, ...] = ()
    files: Mapping[str, UploadedFile] = field(default_factory=dict, compare=False, repr=False)

    @property
    def spec(self) -> Spec:
        """The device before the change."""
        return devices.find(self.place(self.hw))

    @property
    def query(self) -> str:
        """The state as the query of an address."""
        pairs = [("net", self.net), ("hw", self.hw), *self.choices.items(), *self.settings.items()]
        return urlencode([*pairs, *(("pin", pin) for pin in self.pins)])

    @property
    def words(self) -> tuple[str, ...]:
        """What is changed, one by one."""
        return tuple([f"{key} = {value}" for key, value in self.settings.items()])

    @property
    def arguments(self) -> dict[str, str]:
        """The arguments of an estimate among the choices, or what is usual."""
        chosen = {name: value for name, value in self.choices.items() if name in self.view.arguments}
        return {**self.view.usual, **chosen}

    @property
    def tuned(self) -> dict[str, str]:
        """The arguments of an estimate among what is changed."""
        return {key: value for key, value in self.settings.items() if key in self.view.tuned}

    @property
    def of_device(self) -> dict[str, str]:
        """The values of the device among what is changed."""
        return {key: value for key, value in self.settings.items() if key not in self.view.tuned}

    def place(self, name: str) -> str:
        """What an estimate takes for a network or a device: a shipped name, or the path of an own file."""
        return str(self.files[name].path) if name in self.files else name

    def title(self, name: str) -> str:
        """What the user calls a network or a device."""
        return self.files[name].title if name in self.files else name


def read_state(query: str, view: View = NETWORKS, files: Mapping[str, UploadedFile] | None = None) -> PageState:
    """The state of a query. Paths are none: only what is shipped can be asked for, and what is among `files`.

    Raises ArgumentError or UnknownName for anything that is no state.

    >>> read_state("net=alexnet&hw=tegra_x1&memory.bandwidth=51.2+GB%2Fs").words
    ('memory.bandwidth = 51.2 GB/s',)
    """
    if len(query) > LONGEST:
        raise ArgumentError(f"the address has {len(query)} characters; at most {LONGEST} are read")
    own = files or {}
    found: dict[str, str] = {}
    pins: list[str] = []
    for name, value in _pairs(query or view.default):
        if name == "pin":
            pins.append(value)
        elif name in found:
            raise ArgumentError(f"the address gives {name} twice")
        else:
            found[name] = value
    if len(pins) > MOST_PINS:
        raise ArgumentError(f"{len(pins)} variants are pinned; the page compares at most {MOST_PINS}: remove some")
    for pin in pins:
        if "pin=" in pin:
            raise ArgumentError("a pinned variant has pinned variants of its own")
        read_state(pin, view, own)
    net = _known("network", found.pop("net", ""), (*view.nets(), *(name for name, one in own.items() if not one.hw)))
    hw = _known("device", found.pop("hw", ""), (*devices.names(), *(name for name, one in own.items() if one.hw)))
    choices = {name: found.pop(name) for name in view.choices if name in found}
    for name, known in (("stack", stacks.names), ("engine", engines)):
        if name in choices:
            _known(name, choices[name], tuple(known()))
    state = PageState(view=view, net=net, hw=hw, choices=choices, settings=found, pins=tuple(dict.fromkeys(pins)), files=own)
    _check_settings(state)
    return state


def _pairs(query: str) -> list[tuple[str, str]]:
    """Names with values that are not empty: a form sends its empty fields as well."""
    try:
        pairs = parse_qsl(query, max_num_fields=MOST, errors="strict", keep_blank_values=False)
    except ValueError as error:
        raise ArgumentError(f"the address cannot be read: {error}") from None
    return [(name, value.strip()) for name, value in pairs if value.strip()]


def _known(what: str, name: str, names: tuple[str, ...]) -> str:
    if name not in names:
        raise UnknownName(what, name, names, hint=AGAIN if "." in name or name.endswith(SPEC) else "")
    return name


def _check_settings(state: PageState) -> None:
    """Every value that is changed is a numeric key of the device, or an argument of the view."""
    kind = state.spec.kind
    numbers = [key for key, unit, _ in keys(kind) if unit.unit != TEXT]
    for key in state.settings:
        if key not in numbers and key not in state.view.tuned:
            raise UnknownName(f"{kind} key", key, [*numbers, *state.view.tuned, *state.view.choices])


def plain(value: float, unit: str, digits: int = 6) -> str:
    """A number as `--set` takes it.

    >>> plain(2e9, "1"), plain(5.12e10, "B/s"), plain(2 * 1024 * 1024, "B")
    ('2000000000', '51.2 GB/s', '2 MiB')
    """
    if unit == "B" and value >= 1024 and value % 1024 == 0:
        return show_capacity(value, 8)
    return f"{value:.{2 * digits}g}" if unit == COUNT else show(value, unit, digits)
