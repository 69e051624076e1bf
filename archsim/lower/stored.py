"""Formats in which weights and cached values lie in memory, where they are narrower than what is multiplied."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """Size of a stored weight of a linear layer, and of a cached key or value [B]; 0: as they are multiplied.

    emulated: the GPU has no instruction that widens a cached value
    """

    weight_bytes: float = 0.0
    cache_bytes: float = 0.0
    emulated: bool = False


AS_MULTIPLIED = Stored()
