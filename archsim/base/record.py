"""What a record is: keys of caches by identity, digests of its values, fields computed on demand; values
gathered by a key; and the base of all answers.

How answers take their forms is decided above the models: the API says what makes them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property, lru_cache, wraps
from types import MappingProxyType
from typing import Any, ClassVar, Generic, ParamSpec, TypeVar, cast

T = TypeVar("T")
K = TypeVar("K")
P = ParamSpec("P")
PLAIN = (str, int, float, tuple, frozenset, type(None))  # values that a cache compares as such

LABEL: Mapping[str, bool] = MappingProxyType({"label": True})
"""Metadata of a field that says something about the values of its record (a source, a note) and that no model reads."""
DIGITS = 16  # hexadecimal


class ByIdentity(Generic[T]):
    """The key of one object: equal to that of another only if both are the same object.

    For arguments that take longer to compare than the cached function takes to run.
    """

    __slots__ = ("it",)

    def __init__(self, it: T) -> None:
        self.it = it  # held, so that no other object gets its identity

    def __hash__(self) -> int:
        return id(self.it)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByIdentity) and self.it is other.it


def by_key(pairs: Iterable[tuple[K, T]]) -> dict[K, list[T]]:
    """The values of each key, keys and values in the order in which they come.

    >>> by_key([("a", 1), ("b", 2), ("a", 3)])
    {'a': [1, 3], 'b': [2]}
    """
    found: dict[K, list[T]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def kept(size: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A cache of `size` results of a function, whose records are told apart by identity and plain values by their own.

    >>> @kept(8)
    ... def made(numbers: list[float], factor: float) -> list[float]:
    ...     return [factor * number for number in numbers]
    >>> some = [1.0, 2.0]
    >>> made(some, 2.0) is made(some, 2.0), made([1.0, 2.0], 2.0) is made(some, 2.0)
    (True, False)
    """

    def decorated(function: Callable[P, T]) -> Callable[P, T]:
        @lru_cache(maxsize=size)
        def cached(*keys: Any, **words: Any) -> T:
            return function(*(key.it if isinstance(key, ByIdentity) else key for key in keys), **words)

        @wraps(function)
        def found(*values: P.args, **words: P.kwargs) -> T:
            keys = (value if isinstance(value, PLAIN) else ByIdentity(value) for value in values)
            return cached(*keys, **words)  # type: ignore[arg-type]  # words are plain

        return found

    return decorated


class Identified:
    """Base of a frozen record whose `digest` stands for all its values: a changed copy has another one, by itself."""

    @cached_property
    def digest(self) -> str:
        """Sixteen hexadecimal digits that stand for every value of the record but its labels."""
        return digest_of(self)


def digest_of(value: Any) -> str:
    """Sixteen hexadecimal digits that stand for a value of plain data: numbers, words, arrays, records, tables and lists of them.

    The order of a table counts. Raises TypeError for anything else.

    >>> digest_of({"rate": 1.0}) == digest_of({"rate": 1.0}), digest_of({"rate": 1.0}) == digest_of({"rate": 1.5})
    (True, False)
    """
    return hashlib.sha256(_text(value, top=True).encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]


@lru_cache(maxsize=16384)
def _part(value: ByIdentity[Any]) -> str:
    """The digest of a part that many records share, as copies of a stack share the tables that they do not change."""
    return digest_of(value.it)


def _text(value: Any, top: bool = False) -> str:
    match value:
        case None | bool() | str() | bytes():
            return repr(value)
        case int():
            return int.__repr__(value)
        case float():
            return float.__repr__(value)
        case tuple() | list():
            return f"({','.join(map(_text, value))})"
        case frozenset() | set():
            return f"{{{','.join(sorted(map(_text, value)))}}}"
        case _ if hasattr(value, "tobytes"):  # an array of numpy, which this module does not import
            return f"{value.dtype.str}{value.shape}{value.tobytes().hex()}"
        case _ if not top and (isinstance(value, Mapping) or is_dataclass(value)):
            return _part(ByIdentity(value))
        case Mapping():
            return f"{{{','.join([f'{_text(key)}:{_text(one)}' for key, one in value.items()])}}}"
        case _ if is_dataclass(value) and not isinstance(value, type):
            named = [f"{each.name}={_text(getattr(value, each.name))}" for each in fields(value)
                     if each.compare and not each.metadata.get("label")]
            return f"{type(value).__qualname__}({','.join(named)})"
    raise TypeError(f"a digest is of plain data, not of a {type(value).__qualname__}")


# ---------------------------------------------------------------------------------------------------------- lazy fields


class LazyField(Generic[T]):
    """A field of a dataclass (without slots) whose value may be given as a function, which is called on first use.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Answer:
    ...     number: LazyField[int] = LazyField()
    >>> Answer(number=lambda: 6 * 7).number, Answer(number=42).number
    (42, 42)
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type | None = None) -> T:
        if instance is None:
            raise AttributeError(self._name)  # so that a dataclass sees no default
        values: dict[str, Any] = instance.__dict__
        value = values[self._name]
        if callable(value):
            value = values[self._name] = value()
        return cast(T, value)

    def __set__(self, instance: object, value: T | Callable[[], T]) -> None:
        instance.__dict__[self._name] = value


# -------------------------------------------------------------------------------------------------------------- answers


@dataclass(frozen=True, slots=True, kw_only=True)
class Presentation:
    """Forms of an answer: what a notebook shows, the values of `--json`, a whole page, and its charts by title."""

    notebook: Callable[[Any], str]
    record: Callable[[Any], Any]
    page: Callable[[Any], str]
    figures: Callable[[Any], dict[str, Any]]


class Answer:
    """Base of what the functions of the API return."""

    __slots__ = ()
    forms: ClassVar[Presentation | None] = None  # the API sets it

    def _repr_html_(self) -> str | None:
        return None if Answer.forms is None else Answer.forms.notebook(self)

    def to_dict(self) -> Any:
        """The answer as plain values, as `--json` prints them."""
        return self._forms().record(self)

    def to_page(self) -> str:
        """The answer as a self-contained HTML page, as `--html` writes it."""
        return self._forms().page(self)

    def to_figures(self) -> dict[str, Any]:
        """Its charts as figures of plotly, by title."""
        return self._forms().figures(self)

    def _forms(self) -> Presentation:
        if Answer.forms is None:
            raise TypeError("import archsim.api, which knows the forms of answers")
        return Answer.forms
