"""Arguments of cached functions that are told apart by identity, where comparing them takes longer than what is cached."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class ByIdentity(Generic[T]):
    """An object, equal to another one only if it is the very same."""

    __slots__ = ("it",)

    def __init__(self, it: T) -> None:
        self.it = it  # held, so that no other object gets its identity

    def __hash__(self) -> int:
        return id(self.it)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByIdentity) and self.it is other.it
