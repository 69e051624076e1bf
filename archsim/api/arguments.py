"""The words of the command line as arguments of Python functions: numbers with or without units, names, lists, and our errors."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from archsim.base.errors import ArgumentError, nearest
from archsim.base.units import COUNT, parse

if TYPE_CHECKING:
    from archsim.calibration.constants import Calibration

Name = str | os.PathLike[str]
Names = Name | Iterable[Name]


class DeviceWords(TypedDict, total=False):
    """What is changed of a device and of the constants."""

    set: Mapping[str, str] | Names
    scale: Mapping[str, float | str] | Names
    calibration: Name | Calibration


class CommonWords(DeviceWords, total=False):
    """How something runs: the options that most commands share, under their names."""

    seq_len: int | str
    bind: Mapping[str, int] | Names
    strict: bool
    precision: str
    task: str
    threads: int | str
    devices: int | str
    clock: float | str
    memory_clock: float | str
    power_limit: float | str
    power_mode: str
    fidelity: str
    traffic: str
    streams: int | str
    host_cpu: Name
    graph: bool
    fusion: str


class WallWords(TypedDict, total=False):
    """Where power is measured: at the device, or at the plug of its computer."""

    boundary: str
    system: Name


class RunWords(CommonWords, total=False):
    """The same with what a comparison takes several of."""

    batch: int | str
    stack: Name
    inputs: str


class EstimateWords(RunWords, WallWords, total=False):
    """The words of one estimate."""


class ProfileWords(DeviceWords, total=False):
    """How the run of a profile is predicted: all but what the profile says itself."""

    batch: int | str
    strict: bool
    precision: str
    stack: Name
    threads: int | str
    clock: float | str
    memory_clock: float | str
    power_limit: float | str
    power_mode: str
    fidelity: str
    traffic: str
    host_cpu: Name


class BuyingWords(CommonWords, WallWords, total=False):
    """The same with what a buyer says: prices, use, and the size of the work."""

    price: Mapping[str, str] | Names
    prices: Name
    exchange: Mapping[str, str] | Names
    lifetime: str
    duty: float | str
    electricity: str
    pue: float | str
    samples: float | str
    epochs: float | str


OF_RUNS = {**CommonWords.__annotations__, **WallWords.__annotations__}
BUYING = tuple(name for name in BuyingWords.__annotations__ if name not in OF_RUNS)

# other names of arguments, as Python users may know them -> the option
OTHERWISE = {"settings": "set", "scales": "scale", "batch_size": "batch", "dtype": "precision", "model": "net", "network": "net",
             "hardware": "hw", "device": "hw", "framework": "stack", "mode": "task"}  # fmt: skip


def run_arguments(function: str, words: Mapping[str, Any], known: type = RunWords) -> dict[str, Any]:
    """The arguments of `make_request` from words of a user, among those `known`. Raises ArgumentError that names the argument."""
    check_names(function, words, known.__annotations__)
    own = {name: value for name, value in words.items() if value is not None and name not in DeviceWords.__annotations__}
    of_device = {name: value for name, value in words.items() if name in DeviceWords.__annotations__}
    return {name: READ[name](name, value) for name, value in own.items()} | device_arguments(function, of_device)


def device_arguments(function: str, words: Mapping[str, Any]) -> dict[str, Any]:
    """`settings`, `scales` and `calibration` from `set`, `scale` and `calibration`, as far as they are given."""
    check_names(function, words, DeviceWords.__annotations__)
    given = {name: value for name, value in words.items() if value is not None}
    found: dict[str, Any] = {}
    if "set" in given:
        found["settings"] = {key: written("set", key, value) for key, value in table("set", given["set"]).items()}
    if "scale" in given:
        found["scales"] = {key: factor(key, value) for key, value in table("scale", given["scale"]).items()}
    if "calibration" in given:
        found["calibration"] = calibration_of(given["calibration"])
    return found


def check_names(function: str, words: Iterable[str], known: Iterable[str]) -> None:
    """Raise ArgumentError for an argument that a function does not have."""
    listed = [*known]
    for name in words:
        if name not in listed:
            here = OTHERWISE.get(name)
            near = [here] if here else nearest(name, listed) or listed
            raise ArgumentError(f"{function}() has no argument {name!r}; nearest: {', '.join(near)}")


def text(name: str, value: object) -> str:
    """A text, or the path of a file; a network may be a trace."""
    if name == "net" and not isinstance(value, str | os.PathLike):
        value = _held(value)
    if isinstance(value, str | os.PathLike):
        found = os.fspath(value)
        if isinstance(found, str) and found.strip():
            return found
    raise ArgumentError(f"{name}: {value!r} is not a name")


def _held(value: object) -> object:
    """The name of a trace; any other value as it is."""
    from archsim.trace.trace import Trace

    if not isinstance(value, Trace):
        return value
    from archsim.trace.held import hold

    return hold(value)


def written(name: str, key: str, value: object) -> str:
    """A value of a spec as a file would write it; a number stands for a count."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ArgumentError(f"{name}: {key}: {value!r} is not a value like '51.2GB/s' or 40")
    return str(value)


def texts(name: str, value: object) -> list[str]:
    """Several names: a list of them, or one text with commas."""
    if isinstance(value, str):
        found = [word.strip() for word in value.split(",") if word.strip()]
    elif isinstance(value, os.PathLike) or (name == "net" and type(value).__name__ == "Trace"):
        found = [text(name, value)]
    elif isinstance(value, Iterable) and not isinstance(value, Mapping | bytes):
        found = [text(name, word) for word in value]
    else:
        raise ArgumentError(f"{name}: {value!r} is neither a name nor a list of names")
    if not found:
        raise ArgumentError(f"{name}: {value!r} names nothing")
    return list(dict.fromkeys(found))


def whole(name: str, value: object) -> int:
    """A whole number."""
    try:
        number = float(value) if isinstance(value, str) else value
        if not isinstance(number, bool) and float(number) == int(number):  # type: ignore[arg-type, call-overload]
            return int(number)  # type: ignore[call-overload, no-any-return]
    except (TypeError, ValueError, OverflowError):
        pass
    raise ArgumentError(f"{name}: {value!r} is not a whole number")


def quantity(unit: str) -> Callable[[str, object], float]:
    """What reads a number in a base unit, or a text with one."""

    def read(name: str, value: object) -> float:
        try:
            if isinstance(value, str):
                return parse(value, unit)
            if not isinstance(value, bool):
                return parse(repr(float(value)), COUNT)  # type: ignore[arg-type]
        except TypeError:
            pass
        except ValueError as error:
            raise ArgumentError(f"{name}: {error}") from None
        raise ArgumentError(f"{name}: {value!r} is not a number in {unit}, nor a text with a unit")

    return read


def pair_of(name: str, value: object) -> tuple[Any, Any]:
    """One value, or two of a list or of a text with a comma; None in place of a second one that is not there."""
    parts = value.split(",") if isinstance(value, str) else [*value] if isinstance(value, Sequence) else [value]
    if not 1 <= len(parts) <= 2:
        raise ArgumentError(f"{name}: {value!r} is neither a core clock nor a core clock and a memory clock")
    return parts[0], parts[1] if len(parts) == 2 else None


def yes_or_no(name: str, value: object) -> bool:
    """True or False."""
    if isinstance(value, bool):
        return value
    raise ArgumentError(f"{name}: {value!r} is neither True nor False")


def factor(key: str, value: object) -> float:
    """A factor above 0: 1.5, `1.5x` or `150%`."""
    written = str(value).strip() if not isinstance(value, bool) else ""
    try:
        number = parse(written[:-1] if written[-1:] in ("x", "%") else written, COUNT) * (0.01 if written[-1:] == "%" else 1.0)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise ArgumentError(f"scale: {key}: {value!r} is not a factor above 0")
    return number


def table(name: str, value: object) -> dict[str, Any]:
    """Keys with values: a table, or texts KEY=VALUE."""
    if isinstance(value, Mapping):
        return {text(name, key): each for key, each in value.items()}
    found: dict[str, Any] = {}
    for pair in [value] if isinstance(value, str) else texts(name, value):
        key, separator, written = (part.strip() for part in pair.partition("="))
        if not separator or not key or not written:
            raise ArgumentError(f"{name}: {pair!r} is not KEY=VALUE, like memory.bandwidth=51.2GB/s")
        if key in found:
            raise ArgumentError(f"{name}: {key} is given twice")
        found[key] = written
    return found


def vary_texts(vary: Mapping[str, Any] | Names) -> list[str]:
    """What varies, as KEY=VALUES."""
    return [f"{key}={_listed(value)}" for key, value in key_values("vary", vary)]


def key_values(name: str, given: Mapping[str, Any] | Names) -> list[tuple[str, Any]]:
    """Keys with what belongs to them; commas separate values, so that several keys are a list or a table."""
    return list(table(name, given).items()) if given else []


def _listed(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, Iterable) and not isinstance(value, str) else str(value)


def buying_arguments(said: Mapping[str, Any], devices: Sequence[str], task: str) -> tuple[Any, Any, Any]:
    """Prices by id of the device, the use, and the size of the work, from the words of a buyer."""
    from archsim.study.buying import device_prices, usage_of, workload_of

    given = {name: value for name, value in said.items() if value is not None}
    rates = {code: text("exchange", value) for code, value in table("exchange", given.get("exchange", {})).items()}
    prices = [(name, text("price", value)) for name, value in table("price", given.get("price", {})).items()]
    file = text("prices", given["prices"]) if "prices" in given else None
    for name in ("lifetime", "electricity"):
        text(name, given.get(name, "none"))
    for name in ("duty", "pue", "samples", "epochs"):
        if isinstance(given.get(name), bool) or not isinstance(given.get(name, 1), str | int | float):
            raise ArgumentError(f"{name}: {given[name]!r} is not a number")
    usage = usage_of(**{name: given.get(name) for name in ("lifetime", "duty", "electricity", "pue")}, exchange=rates)
    return device_prices(prices, file, devices, rates), usage, workload_of(given.get("samples"), given.get("epochs"), task)


def calibration_of(value: object) -> Any:
    """Constants, or the file that holds them."""
    from archsim.calibration.constants import Calibration, load

    return value if isinstance(value, Calibration) else load(text("calibration", value))


def sizes(name: str, value: object) -> dict[str, int]:
    """Sizes of symbols: a table, or texts NAME=SIZE."""
    return {symbol: whole(f"{name}: {symbol}", size) for symbol, size in table(name, value).items()}


READ: dict[str, Callable[[str, object], Any]] = {
    "batch": whole, "seq_len": whole, "bind": sizes, "strict": yes_or_no,
    "threads": whole, "devices": whole, "streams": whole, "precision": text,
    "task": text, "stack": text, "power_mode": text, "fidelity": text, "traffic": text, "host_cpu": text, "inputs": text,
    "fusion": text,
    "boundary": text, "system": text,
    "graph": yes_or_no, "clock": quantity("Hz"), "memory_clock": quantity("Hz"), "power_limit": quantity("W"),
}  # fmt: skip
