"""Streams of tiled and blocked products: what they touch by count, and the traffic model held to them."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np
import pytest

from archsim.base.errors import Unsupported
from archsim.cache.compile import available
from archsim.cache.cpu_products import Blocks, blocked_product, blocks_of
from archsim.cache.hierarchy import hierarchy_of
from archsim.cache.layers import launch_traffic, product_of
from archsim.cache.tiles import REGION, A, B, C, Product, by_columns, by_rows, gathered, matrix_result, waves
from archsim.device import catalog
from archsim.estimation.request import make_request
from archsim.lower.columns import Role
from archsim.lower.kernel import Kernel
from archsim.lower.layer import Layer, layer_of
from archsim.validation.traffic import compare

FROZEN = json.loads((Path(__file__).parents[2] / "reports" / "validation" / "traffic.json").read_text("utf-8"))


def plain(m: int, n: int, k: int, tile: tuple[int, int] = (32, 32)) -> Product:
    return Product(m=m, n=n, k=k, count=1, tile_m=tile[0], tile_n=tile[1], a=by_rows(A, m, k, tile[0], 4),
                   b=by_columns(B, n, k, tile[1], 4), result=matrix_result(C, m, n, *tile, 4))  # fmt: skip


def touched(product: Product, region: int, slots: int = 4) -> tuple[set[int], int]:
    """The values of a tensor that are touched, and how many bytes in all."""
    values: set[int] = set()
    total = 0
    for wave in waves(product, slots, 2):
        for turn in wave:
            mine = turn.address // REGION == region // REGION
            for begin, size in zip((turn.address[mine] - region).tolist(), turn.size[mine].tolist(), strict=True):
                values.update(range(begin // 4, (begin + size) // 4))
                total += size
    return values, total


def test_every_tile_loads_its_operands_and_writes_its_part_once() -> None:
    product = plain(70, 90, 50)
    a, a_bytes = touched(product, A)
    b, b_bytes = touched(product, B)
    c, c_bytes = touched(product, C)
    assert (a, b, c) == (set(range(70 * 50)), set(range(50 * 90)), set(range(70 * 90)))
    assert (a_bytes, b_bytes, c_bytes) == (3 * 70 * 50 * 4, 3 * 50 * 90 * 4, 70 * 90 * 4)


def test_the_gather_touches_what_the_window_covers() -> None:
    request = make_request("alexnet", "gtx_1080")
    op = next(op for op in request.trace.ops if op.name == "conv2")
    layer = layer_of(op, 4)
    begin, size = gathered(0, layer, (2, 2), 128)(0, 0, 0, layer.ci * layer.taps)
    values = np.unique(np.concatenate([np.arange(b, b + s, 4) for b, s in zip(begin, size, strict=True)])) // 4
    rows = np.unique(values % (layer.h * layer.w) // layer.w)
    assert rows.tolist() == list(range(7))  # 128 pixels are rows 0 to 4 of 27 pixels; two more above and below, less the pad
    assert len(np.unique(values // (layer.h * layer.w))) == layer.ci


def test_a_wave_deals_its_ctas_to_all_processors() -> None:
    (first, *_), *_ = waves(plain(64, 128, 8), slots=8, processors=4)
    assert sorted(set(first.core.tolist())) == [0, 1, 2, 3]


def test_what_fits_the_cache_is_moved_once() -> None:
    device = catalog.find("gtx_1080").device
    seen = launch_traffic(plain(128, 128, 128), 40, hierarchy_of(device, 20), 0.0, fast=False)
    assert seen.dram_read == 2 * 128 * 128 * 4
    assert seen.dram_written == 128 * 128 * 4
    assert seen.share == 1.0
    warm = launch_traffic(plain(128, 128, 128), 40, hierarchy_of(device, 20), 128 * 128 * 4, fast=False)
    assert warm.dram_read == 128 * 128 * 4


@pytest.mark.parametrize(("work", "tiles"), [(16, 16 * 16), (36, 8 * 8)])
def test_winograd_reads_a_filter_for_each_of_its_points(work: int, tiles: int) -> None:
    op = next(op for op in make_request("resnet_56", "gtx_1080").trace.ops if op.name == "layer1.0.conv1")
    kernel = Kernel(name="k", role=Role.WINOGRAD, efficiency="one", m=16, n=tiles, k=16, work=work)
    values, _ = touched(product_of(op, kernel, (32, 32), 4), A)
    assert len(values) == work * 16 * 16


def gradient(layer: str, phase: str, role: Role, **sizes: float) -> tuple[Product, Layer]:
    """A product of a gradient of a layer of AlexNet or ResNet-18, for two images."""
    net = "resnet_18" if "." in layer else "alexnet"
    ops = make_request(net, "gtx_1080", task="forward_backward", batch=2).trace.ops
    op = next(op for op in ops if op.parent == layer and op.phase == phase)
    geometry = layer_of(op, 4)
    m, n, k = geometry.product
    kernel = Kernel(name="k", role=role, efficiency="one", **{"m": m, "n": n, "k": k, **sizes})
    return product_of(op, kernel, (32, 32), 4), geometry


def test_a_data_gradient_reads_every_filter_and_every_gradient_that_counts() -> None:
    for layer in ("conv3", "layer2.0.conv1"):  # strides 1 and 2
        product, geometry = gradient(layer, "backward_data", Role.CONVOLUTION)
        filters, _ = touched(product, A)
        assert len(filters) * 4 == geometry.filter_bytes
        gradients, _ = touched(product, B)
        assert len(gradients) * 4 == geometry.output_bytes
        results, written = touched(product, C)
        assert len(results) * 4 == geometry.input_bytes == written


def test_a_filter_gradient_reads_both_tensors_and_writes_each_filter_once() -> None:
    product, geometry = gradient("conv3", "backward_filter", Role.CONVOLUTION)
    assert len(touched(product, A)[0]) * 4 == geometry.output_bytes
    assert len(touched(product, B)[0]) * 4 == geometry.input_bytes
    results, written = touched(product, C)
    assert len(results) * 4 == geometry.filter_bytes == written


def test_winograds_gradients_read_what_the_filters_cover() -> None:
    ops = make_request("alexnet", "gtx_1080", task="forward_backward", batch=2).trace.ops
    layer = layer_of(next(op for op in ops if op.parent == "conv3" and op.phase == "backward_filter"), 4)
    tiles = layer.batch * 7 * 7
    product, _ = gradient("conv3", "backward_filter", Role.WINOGRAD, m=layer.co, n=layer.ci, k=tiles, work=16)
    assert len(touched(product, A)[0]) * 4 == layer.output_bytes
    assert len(touched(product, B)[0]) * 4 == layer.input_bytes
    product, _ = gradient("conv3", "backward_data", Role.WINOGRAD, m=layer.ci, n=tiles, k=layer.co, work=16)
    assert len(touched(product, B)[0]) * 4 == layer.output_bytes
    assert len(touched(product, C)[0]) * 4 == layer.input_bytes


def test_a_scattered_product_writes_to_every_pixel_that_a_tap_reads() -> None:
    ops = make_request("alexnet", "gtx_1080", task="forward_backward", batch=2).trace.ops
    layer = layer_of(next(op for op in ops if op.parent == "conv3" and op.phase == "backward_data"), 4)
    product, _ = gradient("conv3", "backward_data", Role.SCATTER, m=layer.ci * 9, n=2 * 13 * 13, k=layer.co)
    results, written = touched(product, C)
    assert len(results) * 4 == layer.input_bytes
    assert 8 * layer.input_bytes < written < 9 * layer.input_bytes  # nine taps, less at the edges


def test_parts_of_a_split_read_the_operands_once_together_and_write_apart() -> None:
    whole, parts = plain(64, 64, 256), replace(plain(64, 64, 256), split=4)
    assert parts.ctas == 4 * whole.ctas
    for region in (A, B):
        assert touched(parts, region) == touched(whole, region)
    regions = {int(address) // REGION for wave in waves(parts, 16, 4) for part in wave for address in part.address}
    assert regions == {0, 1, 3, 4, 5, 6}  # A, B, and a region of results for each part


def test_attention_is_no_product_of_two_matrices() -> None:
    op = make_request("alexnet", "gtx_1080").trace.ops[0]
    with pytest.raises(Unsupported, match="no product of two matrices"):
        product_of(op, Kernel(name="k", role=Role.ATTENTION, efficiency="full"), (32, 32), 4)


def test_a_blocked_product_touches_every_value() -> None:
    m, n, k = 20, 30, 40
    lines: dict[int, set[int]] = {}
    for part in blocked_product(m, n, k, Blocks(rows=6, columns=8, m=12, n=16, k=16), 4):
        for begin, size in zip(part.address.tolist(), part.size.tolist(), strict=True):
            lines.setdefault(begin // REGION, set()).update(range(begin % REGION // 4, (begin % REGION + size) // 4))
    assert [len(lines[i]) for i in range(3)] == [m * k, k * n, m * n]


def test_blocks_leave_a_way_of_each_cache() -> None:
    device = catalog.find("i7_6700k").device
    blocks = blocks_of(device, 4)
    assert 0.5 < blocks.k * (blocks.rows + blocks.columns) * 4 / device.l1.size <= 7 / 8
    assert 0.4 < blocks.m * blocks.k * 4 / device.l2.size <= 3 / 4
    assert 0.5 < blocks.n * blocks.k * 4 / device.l3.size <= 15 / 16


@pytest.mark.parametrize("layer", ["conv4", "conv5"])
def test_the_frozen_comparison_is_what_the_model_gives_now(layer: str) -> None:
    (row,) = compare(devices=["gtx_1080"], networks=["alexnet"], layers=[layer])
    frozen = next(r for r in FROZEN["rows"] if (r["hardware"], r["network"], r["layer"]) == ("gtx_1080", "alexnet", layer))
    for name in ("dram_model", "dram_simulated", "l2_model", "l2_simulated"):
        assert getattr(row, name) == pytest.approx(frozen[name], rel=1e-5), "run archsim cache --check reports/validation"


def test_dram_traffic_is_within_15_percent_of_the_simulation() -> None:
    for hardware in ("gtx_1080", "titan_x_maxwell"):
        for network in ("alexnet", "vgg_16"):
            rows = [r for r in FROZEN["rows"] if (r["hardware"], r["network"]) == (hardware, network)]
            assert len(rows) == (5 if network == "alexnet" else 13)
            assert median(abs(r["dram_model"] / r["dram_simulated"] - 1) for r in rows) <= 0.15


def test_known_gaps_are_still_open() -> None:
    """The traffic model keeps an operand of exactly half the L2: closing that shows here."""
    errors = {(r["hardware"], r["layer"]): r["dram_model"] / r["dram_simulated"] - 1 for r in FROZEN["rows"]}
    assert errors["gtx_1080", "conv2_2"] < -0.3


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc here")
@pytest.mark.skipif(not available(), reason="numba (extra fast) is not installed")
def test_memory_stays_flat() -> None:
    """A hundred million accesses in under 230 MB, nearly all of it numba."""
    begin = (
        "import numpy as np\n"
        "from pathlib import Path\n"
        "from archsim.cache.access import Accesses\n"
        "from archsim.cache.simulate import Simulation\n"
        "from archsim.cache.hierarchy import hierarchy_of\n"
        "from archsim.device.catalog import find\n"
        "def peak():\n"
        "    return int(Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0])\n"
        "state = Simulation(hierarchy_of(find('i7_6700k').device), fast=True)\n"
        "draw = np.random.RandomState(1)\n"
        "state.feed(Accesses(address=np.arange(0, 80, 8)))\n"
    )
    code = begin + (
        "before = peak()\n"
        "for _ in range(100_000_000 // 32768 + 1): state.feed(Accesses(address=8 * draw.randint(0, 1 << 24, 32768)))\n"
        "assert state.accesses >= 100_000_000\n"
        "print(before, peak())\n"
    )
    subprocess.run([sys.executable, "-c", begin], check=True)  # compiles, which takes more than what it compiled does
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    before, after = map(int, done.stdout.split())
    assert after < 230_000  # KiB
    assert after - before < 20_000
