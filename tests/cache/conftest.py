"""What the tests of the cache share: both speeds, and streams by description."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from archsim.cache.access import Accesses
from archsim.cache.compile import available

FAST = pytest.param(True, id="fast", marks=pytest.mark.skipif(not available(), reason="numba (extra fast) is not installed"))
SPEEDS = [pytest.param(False, id="plain"), FAST]


@pytest.fixture(params=SPEEDS)
def fast(request: pytest.FixtureRequest) -> bool:
    """Plain, and compiled where numba is installed."""
    return bool(request.param)


def _sequential(t: dict[str, Any]) -> Accesses:
    return Accesses(address=np.tile(np.arange(0, t["bytes"], t["step"]), t["passes"]))


def _strided(t: dict[str, Any]) -> Accesses:
    return Accesses(address=np.tile(np.arange(0, t["window"], t["stride"]), t["passes"]))


def _random(t: dict[str, Any]) -> Accesses:
    draw = np.random.RandomState(t["seed"])
    address = 8 * draw.randint(0, t["bytes"] // 8, size=t["n"])
    store = draw.random_sample(t["n"]) < t["store_fraction"] if t["store_fraction"] else np.zeros(t["n"])
    return Accesses(address=address, store=store.astype(np.int64))


def _cyclic_permutation(t: dict[str, Any]) -> Accesses:
    order = 64 * np.random.RandomState(t["seed"]).permutation(t["bytes"] // 64)
    return Accesses(address=np.resize(order, t["n"]))


def _triad(t: dict[str, Any]) -> Accesses:
    i, n = 8 * np.arange(t["n"]), t["n"]
    return Accesses(address=np.stack([i + 8 * n, i + 16 * n, i], axis=1).ravel(), store=np.tile([0, 0, 1], n))


def _stencil5(t: dict[str, Any]) -> Accesses:
    ny, nx = t["ny"], t["nx"]
    j, i = np.meshgrid(np.arange(1, ny - 1), np.arange(1, nx - 1), indexing="ij")
    c = 8 * (j * nx + i).ravel()
    address = np.stack([c - 8 * nx, c - 8, c, c + 8, c + 8 * nx, c + 8 * ny * nx], axis=1).ravel()
    return Accesses(address=address, store=np.tile([0, 0, 0, 0, 0, 1], len(c)))


def _matmul(t: dict[str, Any]) -> Accesses:
    n, block = t["n"], t["block"]
    i0, j0, k0, *inner = np.meshgrid(*[np.arange(n // block)] * 3, *[np.arange(block)] * 3, indexing="ij")
    within = dict(zip(t["order"], inner, strict=True))
    i, j, k = ((outer * block + within[name]).ravel() for outer, name in ((i0, "i"), (j0, "j"), (k0, "k")))
    c = 2 * n * n + i * n + j
    address = 8 * np.stack([i * n + k, n * n + k * n + j, c, c], axis=1).ravel()
    return Accesses(address=address, store=np.tile([0, 0, 0, 1], len(i)))


KINDS = {
    "sequential": _sequential, "strided": _strided, "random": _random, "cyclic_permutation": _cyclic_permutation,
    "triad": _triad, "stencil5": _stencil5, "matmul": _matmul,
}  # fmt: skip


@pytest.fixture(scope="session")
def stream() -> Any:
    """A stream from its description, as `reference.json` defines it."""
    return lambda description: KINDS[description["kind"]](description)
