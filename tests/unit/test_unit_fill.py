"""Tiles of batched products that a library chooses as if each product were alone."""

from __future__ import annotations

from archsim.lower.kernel import Kernel, Option, Plan, pack_gpu
from archsim.lower.role import Role
from archsim.stack.menu import Menu, Tile


def tiles_taken(m: int, n: int, fill: int) -> list[tuple[float, float]]:
    sizes = ((128, 128), (64, 64), (32, 32))
    menu = Menu(tiles=tuple(Tile(m=a, n=b, k=16, threads=256, registers=64, shared=0) for a, b in sizes), fill=fill)
    kernel = Kernel(name="bmm", role=Role.PRODUCT, efficiency="full", menu="some", m=m, n=n, k=64, count=1000)
    packed = pack_gpu([Plan(options=(Option(algorithm="gemm", kernels=(kernel,)),), read_bytes=0, write_bytes=0)], {"some": menu})
    return list(zip(packed.tile_m.tolist(), packed.tile_n.tolist(), strict=True))


def test_a_product_has_at_least_so_many_tiles_however_many_products_there_are() -> None:
    assert tiles_taken(512, 512, fill=1) == [(128, 128), (64, 64), (32, 32)]
    assert tiles_taken(512, 512, fill=64) == [(64, 64), (32, 32)]
    assert tiles_taken(511, 511, fill=65) == [(32, 32)]


def test_where_no_tile_is_small_enough_it_has_the_most_that_there_can_be() -> None:
    assert tiles_taken(64, 64, fill=64) == [(32, 32)]
