"""Values of a trace file: names, shapes and text; and attributes of op kinds, each read by the rule that its field declares.

    stride: tuple[int, int] = pair(least=1, default=(1, 1))

declares a dataclass field; `read` and `written` convert between JSON objects and kinds. A bool is never accepted as an integer,
and every number has bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, field, fields
from functools import cache
from typing import Any, NamedTuple

from archsim.base.errors import nearest
from archsim.trace.dims import LARGEST, MOST_DIMS, Dim, Extent, factors, short
from archsim.trace.kind import PHASES

DTYPES = ("fp32", "tf32", "fp16", "bf16", "fp8", "int8")
LONGEST_NAME = 200
LONGEST_DIM = 64


def name(value: object) -> str:
    """The name of a network, an op or a tensor: printable, and not long."""
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_NAME or not value.isprintable():
        raise ValueError(f"must be a name of 1 to {LONGEST_NAME} printable characters, not {short(value)}")
    return value


def printable(text: str, most: int = LONGEST_NAME - 8, other: str = "?") -> str:
    """The beginning of a text of a file, with `other` in place of what cannot be printed; as a name it has room for a number."""
    return "".join(c if c.isprintable() else other for c in text)[:most]


class UniqueNames:
    """Gives each name once: with a number behind it where it was given before."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = {*taken}
        self._numbers: dict[str, int] = {}  # the number that was last put behind a name

    def free(self, wanted: str) -> str:
        """The name, or the next with a number.

        >>> names = UniqueNames(["a", "a.2"])
        >>> names.free("a"), names.free("a"), names.free("b")
        ('a.3', 'a.4', 'b')
        """
        name, number = wanted, self._numbers.get(wanted, 1)
        while name in self._taken:
            number += 1
            name = f"{wanted}.{number}"
        self._numbers[wanted] = number
        self._taken.add(name)
        return name


def names(value: object) -> tuple[str, ...]:
    """A list of names."""
    if not isinstance(value, list):
        raise ValueError(f"must be a list of names, not {short(value)}")
    return tuple([name(item) for item in value])


def dims(value: object) -> tuple[Dim, ...]:
    """A shape, with numbers and symbols."""
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_DIMS:
        raise ValueError(f"must be a list of 1 to {MOST_DIMS} dimensions, not {short(value)}")
    return tuple([_dim(item) for item in value])


def _dim(value: object) -> Dim:
    if isinstance(value, str) and len(value) <= LONGEST_DIM:
        if factors(value)[0] <= LARGEST:
            return value
    elif isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= LARGEST:
        return value
    raise ValueError(f"has the dimension {short(value)}; write a whole number from 1 to 2^53 or a symbol such as 'N'")


def shapes(value: object) -> tuple[tuple[Dim, ...], ...]:
    """A list of shapes, not empty."""
    if not isinstance(value, list) or not value:
        raise ValueError(f"must be a list of shapes, not {short(value)}")
    return tuple([dims(item) for item in value])


def inputs(value: object) -> dict[str, tuple[Dim, ...]]:
    """Shapes by name, not empty."""
    if not isinstance(value, dict) or not value:
        raise ValueError(f"must name at least one input with its shape, not {short(value)}")
    return {name(key): dims(shape) for key, shape in value.items()}


def dtype(value: object) -> str:
    """The type of the tensors."""
    return _one_of(value, DTYPES)


def phase(value: object) -> str:
    """The phase of an op."""
    return _one_of(value, PHASES)


def text(value: object) -> str:
    """One printable line."""
    if not isinstance(value, str) or not value.isprintable():
        raise ValueError(f"must be one line of text, not {short(value)}")
    return value


def sizes(value: object) -> dict[str, Extent]:
    """The usual value of symbols, and their largest: `{"T": {"usual": 128, "most": 512}}`."""
    form = 'must be like {"T": {"usual": 128, "most": 512}}, with whole numbers, the usual one no larger'
    if not isinstance(value, dict):
        raise ValueError(f"{form}, not {short(value)}")
    found = {}
    for symbol, given in value.items():
        if not isinstance(given, dict) or set(given) != {"usual", "most"}:
            raise ValueError(f"{form}, not {short(given)}")
        usual, most = _dim(given["usual"]), _dim(given["most"])
        if not isinstance(usual, int) or not isinstance(most, int) or usual > most:
            raise ValueError(f"{form}, not {short(given)}")
        found[symbol] = Extent(usual=usual, most=most)
    return found


def meanings(value: object) -> dict[str, str]:
    """What each symbol means, in words."""
    if not isinstance(value, dict):
        raise ValueError(f"must say in words what each symbol means, not {short(value)}")
    for symbol in value:
        _dim(symbol)
    return {symbol: text(meaning) for symbol, meaning in value.items()}


def _one_of(value: object, allowed: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"must be one of {', '.join(allowed)}, not {short(value)}")
    return value


# ----------------------------------------------------------------------------------------------------------- attributes

MOST = 2**31 - 1  # above any size, index or count of an op

LONGEST_WORD = 200

Reader = Callable[[object], Any]


def _attribute(read: Reader, default: object) -> Any:
    if default is MISSING:
        return field(metadata={"read": read})
    return field(default=default, metadata={"read": read})


def integer(*, least: int = 0, most: int = MOST, default: object = MISSING) -> Any:
    """A whole number from `least` to `most`."""
    return _attribute(lambda value: _integer(value, least, most), default)


def flag(*, default: object = MISSING) -> Any:
    """`true` or `false`."""
    return _attribute(_flag, default)


def fraction(*, default: object = MISSING) -> Any:
    """A number from 0 to 1."""
    return _attribute(_fraction, default)


def word(*, default: object = MISSING) -> Any:
    """A printable text of 1 to 200 characters."""
    return _attribute(_word, default)


def choice(*allowed: str, default: object = MISSING) -> Any:
    """One of the words `allowed`."""
    return _attribute(lambda value: _choice(value, allowed), default)


def pair(*, least: int, default: object = MISSING) -> Any:
    """Two whole numbers, [vertical, horizontal]."""
    return _attribute(lambda value: _integers(value, least, (2,)), default)


def padding() -> Any:
    """[vertical, horizontal] for both sides alike, or [top, left, bottom, right]."""
    return _attribute(lambda value: _integers(value, 0, (2, 4)), (0, 0))


def integers(*, default: object = MISSING) -> Any:
    """A list of whole numbers, one for each dimension of the input."""
    return _attribute(lambda value: _integers(value, 0, range(1, 9)), default)


def _integer(value: object, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"must be a whole number, not {_kind_of(value)}")
    if not least <= value <= most:
        raise ValueError(f"must lie in {least}..{most}, not {value}")
    return value


def _integers(value: object, least: int, lengths: Any) -> tuple[int, ...]:
    if not isinstance(value, list | tuple) or len(value) not in lengths:
        wanted = " or ".join(map(str, lengths)) if len(lengths) < 3 else f"{lengths[0]} to {lengths[-1]}"
        found = f"a list of {len(value)}" if isinstance(value, list | tuple) else _kind_of(value)
        raise ValueError(f"must be a list of {wanted} whole numbers, not {found}")
    return tuple([_integer(number, least, MOST) for number in value])


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"must be true or false, not {_kind_of(value)}")
    return value


def _fraction(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"must be a number, not {_kind_of(value)}")
    if not (math.isfinite(value) and 0 <= value <= 1):
        raise ValueError(f"must lie in 0..1, not {value}")
    return float(value)


def _word(value: object) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_WORD or not value.isprintable():
        raise ValueError(f"must be a word of 1 to {LONGEST_WORD} printable characters, not {_kind_of(value)}")
    return value


def _choice(value: object, allowed: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"must be one of {', '.join(allowed)}, not {_kind_of(value)}")
    return value


def _kind_of(value: object) -> str:
    names = {bool: "true or false", list: "a list", dict: "an object", float: "a fraction", type(None): "null"}
    return names.get(type(value)) or short(value)


class Rule(NamedTuple):
    """How one attribute is read, and its default (`MISSING` where it is required)."""

    name: str
    read: Reader
    default: Any


@cache
def rules(kind: Any) -> tuple[Rule, ...]:
    """The attributes of a kind, in the order of its fields."""
    return tuple([Rule(f.name, f.metadata["read"], f.default) for f in fields(kind)])


def read(kind: Any, raw: Mapping[str, object], also: Sequence[str] = ()) -> tuple[Any, list[str]]:
    """The kind that `raw` describes, or None, and its problems.

    `also` are keys that a misspelt attribute may have meant.
    """
    values, problems, known = {}, [], rules(kind)
    for name, reader, default in known:
        if name not in raw:
            if default is MISSING:
                problems.append(f"attribute {name!r} is missing")
            continue
        try:
            values[name] = reader(raw[name])
        except ValueError as error:
            problems.append(f"attribute {name!r} {error}")
    names = [rule.name for rule in known]
    for name in raw:
        if name not in names:
            near = nearest(name, [*names, *also])
            problems.append(f"unknown attribute {name!r}" + (f"; nearest: {', '.join(near)}" if near else ""))
    return (None, problems) if problems else (kind(**values), [])


def written(kind: Any) -> dict[str, object]:
    """The JSON attributes of a kind: those without a default, and those that differ from it."""
    found: dict[str, object] = {}
    kind_class: Any = type(kind)
    for name, _, default in rules(kind_class):
        value = getattr(kind, name)
        if value != default:  # always so where there is none
            found[name] = list(value) if isinstance(value, tuple) else value
    return found
