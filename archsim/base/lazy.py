"""Fields of a record that are computed when somebody asks for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")


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
