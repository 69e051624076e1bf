"""One reader for each kind of value that a user gives: on a command line, in Python, in a study, on the page.

A reader returns what a model takes, or raises ValueError that says what is wrong. `read` puts the argument before it, as
who has asked calls it: `--clock: ...`, `clock: ...`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from archsim.base.errors import ArgumentError
from archsim.base.units import COUNT, parse, parse_share

T = TypeVar("T")
YES, NO = ("yes", "true", "on"), ("no", "false", "off")


def read(name: str, reader: Callable[..., T], *given: object) -> T:
    """What a reader makes of a value; its error names the argument. Raises ArgumentError, which is a ValueError."""
    try:
        return reader(*given)
    except ValueError as error:
        raise ArgumentError(f"{name}: {error}") from None


def quantity(value: object, unit: str) -> float:
    """A number in a base unit, or a text with one.

    >>> quantity("690MHz", "Hz"), quantity(150, "W")
    (690000000.0, 150.0)
    """
    try:
        if isinstance(value, str):
            return parse(value, unit)
        if not isinstance(value, bool):
            return parse(repr(float(value)), COUNT)  # type: ignore[arg-type]
    except TypeError:
        pass
    raise ValueError(f"{value!r} is not a number" + (f" in {unit}, nor a text with a unit" if unit != COUNT else ""))


def clocks(value: object) -> tuple[float, float | None]:
    """A core clock, and a memory clock where there are two of a list or of a text with a comma [Hz].

    >>> clocks("1.4GHz,5GHz"), clocks(1e9)
    ((1400000000.0, 5000000000.0), (1000000000.0, None))
    """
    listed = value.split(",") if isinstance(value, str) else [*value] if isinstance(value, Sequence) else [value]
    if not 1 <= len(listed) <= 2:
        raise ValueError(f"{value!r} is neither a core clock nor a core clock and a memory clock")
    core, memory = (*listed, None)[:2]
    return quantity(core, "Hz"), None if memory is None else quantity(memory, "Hz")


def whole(value: object) -> int:
    """A whole number.

    >>> whole("16"), whole(4.0)
    (16, 4)
    """
    try:
        number = parse(value, COUNT) if isinstance(value, str) else value
        if not isinstance(number, bool) and float(number) == int(number):  # type: ignore[arg-type, call-overload]
            return int(number)  # type: ignore[call-overload, no-any-return]
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(f"{value!r} is not a whole number")


def factor(value: object) -> float:
    """A factor above 0.

    >>> factor(2), factor("1.5x"), factor("150%")
    (2.0, 1.5, 1.5)
    """
    text = str(value).strip() if not isinstance(value, bool) else ""
    try:
        found = parse(text[:-1] if text[-1:] in ("x", "%") else text, COUNT) * (0.01 if text[-1:] == "%" else 1.0)
    except ValueError:
        found = 0.0
    if not 0 < found < float("inf"):
        raise ValueError(f"{value!r} is not a factor above 0")
    return found


def share(value: object) -> float:
    """A fraction, or a text in per cent.

    >>> share(0.2), share("20%")
    (0.2, 0.2)
    """
    return parse_share(value) if isinstance(value, str) else quantity(value, COUNT)


def yes_or_no(value: object) -> bool:
    """True or False, or a text that says so."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and (word := value.strip().lower()) in (*YES, *NO):
        return word in YES
    raise ValueError(f"{value!r} is neither True nor False, yes nor no")


def name(value: object) -> str:
    """A text that is not empty, or the path of a file."""
    if isinstance(value, str | os.PathLike):
        found = os.fspath(value)
        if isinstance(found, str) and found.strip():
            return found
    raise ValueError(f"{value!r} is not a name")


def written(value: object) -> str:
    """A value of a spec as a file would write it; a number stands for a count."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{value!r} is not a value like '51.2GB/s' or 40")
    return str(value)


def parts(text: str) -> list[str]:
    """The words of a text with commas.

    >>> parts("a, b,")
    ['a', 'b']
    """
    return [word.strip() for word in text.split(",") if word.strip()]


def names(value: object) -> list[str]:
    """Several names, each once: a list of them, one name, or one text with commas."""
    if isinstance(value, str):
        found = parts(value)
    elif isinstance(value, os.PathLike):
        found = [name(value)]
    elif isinstance(value, Iterable) and not isinstance(value, Mapping | bytes):
        found = [name(word) for word in value]
    else:
        raise ValueError(f"{value!r} is neither a name nor a list of names")
    if not found:
        raise ValueError(f"{value!r} names nothing")
    return list(dict.fromkeys(found))


def pairs(value: object, example: str) -> list[tuple[str, Any]]:
    """Keys with values: a table, or texts KEY=VALUE like the `example`."""
    if isinstance(value, Mapping):
        return [(name(key), each) for key, each in value.items()]
    if not isinstance(value, str) and not (isinstance(value, Iterable) and all(isinstance(text, str) for text in value)):
        raise ValueError(f"{value!r} is neither a table nor texts like {example}")
    return [pair(text, example) for text in ([value] if isinstance(value, str) else value)]


def pair(text: str, example: str) -> tuple[str, str]:
    """The key and the value of KEY=VALUE."""
    key, separator, value = (part.strip() for part in text.partition("="))
    if not separator or not key or not value:
        raise ValueError(f"{text!r} is not KEY=VALUE, like {example}")
    return key, value


def table(value: object, example: str) -> dict[str, Any]:
    """The same, each key once."""
    listed = pairs(value, example)
    found = dict(listed)
    if len(found) < len(listed):
        keys = [key for key, _ in listed]
        raise ValueError(f"{next(key for key in keys if keys.count(key) > 1)} is given twice")
    return found
