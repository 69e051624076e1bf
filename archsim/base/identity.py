"""Keys of caches by identity, for arguments that take longer to compare than the cached function takes to run."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class ByIdentity(Generic[T]):
    """The key of one object: equal to that of another only if both are the same object."""

    __slots__ = ("it",)

    def __init__(self, it: T) -> None:
        self.it = it  # held, so that no other object gets its identity

    def __hash__(self) -> int:
        return id(self.it)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByIdentity) and self.it is other.it
