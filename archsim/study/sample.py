"""Latin hypercube samples computed from the position of a point, so that any part can be made without the rest.

With n points each axis is cut into n equal parts, and each part holds one point (McKay, Beckman and Conover 1979, A comparison of
three methods for selecting values of input variables, Technometrics 21). Which part a point gets is a permutation of the points:
a Feistel network over the least power of four above n, repeated until the result is below n (cycle walking; Black and Rogaway
2002, Ciphers with arbitrary finite domains). The position inside the part is a hash of point, axis and seed.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from archsim.cost.cost import Array

ROUNDS = 4  # a Feistel network of four rounds with random functions is a random permutation (Luby and Rackoff 1988)
MOST = 1 << 52  # points; positions on an axis are doubles
Words = NDArray[np.uint64]


def hypercube_positions(start: int, stop: int, count: int, seed: int, axis: str) -> Array:
    """Positions on an axis of the points from `start` to `stop` of `count`, each in [0, 1), [stop - start].

    >>> sorted(np.floor(hypercube_positions(0, 5, 5, 0, "clock") * 5).tolist())  # one point in each fifth
    [0.0, 1.0, 2.0, 3.0, 4.0]
    """
    position = np.arange(start, stop, dtype=np.uint64)
    key = _key(seed, axis)
    part = permuted(position, count, key)
    inside = (_mixed(position ^ np.uint64(key)) >> np.uint64(11)).astype(float) * 2.0**-53
    return np.minimum((part.astype(float) + inside) / count, np.nextafter(1.0, 0.0))


def permuted(position: Words, count: int, key: int) -> Words:
    """A permutation of 0 ... count - 1, selected by `key`, at the given positions, [D].

    >>> sorted(permuted(np.arange(5, dtype=np.uint64), 5, key=1).tolist())
    [0, 1, 2, 3, 4]
    """
    half = max(1, ((count - 1).bit_length() + 1) // 2)
    found = _network(position, half, key)
    while (beyond := found >= count).any():
        found[beyond] = _network(found[beyond], half, key)
    return found


def _network(words: Words, half: int, key: int) -> Words:
    """A Feistel network on words of two halves of `half` bits."""
    mask, shift = np.uint64((1 << half) - 1), np.uint64(half)
    left, right = words >> shift, words & mask
    for turn in range(ROUNDS):
        left, right = right, left ^ (_mixed(right ^ np.uint64((key + turn * 0x9E3779B97F4A7C15) % 2**64)) & mask)
    return np.asarray((left << shift) | right)


def _mixed(words: Words) -> Words:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(words ^ (words >> np.uint64(31)))


def _key(seed: int, axis: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}:{axis}".encode()).digest()[:8], "little")
