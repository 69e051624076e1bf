"""Readers of the values of a trace file outside the ops' attributes: names, shapes, text. Each raises ValueError."""

from __future__ import annotations

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
