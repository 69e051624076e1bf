"""What is named as the limit is what helps: improve it by 20 %, and the latency falls by more than by improving anything else."""

from collections.abc import Iterator

import numpy as np
import pytest

from archsim.base.errors import ArchsimError
from archsim.cost.bounds import POWER
from archsim.cost.evaluate import SPEEDUP
from archsim.estimation.estimate import estimate_of
from archsim.estimation.pipeline import run
from archsim.estimation.request import Request, make_request
from archsim.estimation.result import HOST, Estimate
from archsim.study.grid import with_columns

NETWORKS = ("alexnet", "vgg_16", "resnet_50", "googlenet", "mobilenet_v2", "lstm_ptb", "bert_base", "squeezenet_1_1")
DEVICES = ("tesla_k40", "titan_x_maxwell", "gtx_1080", "tegra_x1", "tesla_v100_sxm2", "tesla_t4", "a100_sxm4_80gb", "rtx_4090",
           "h100_sxm5_80gb", "l4", "i7_6700k", "xeon_platinum_8480")  # fmt: skip
BATCHES = (1, 2, 4, 16, 64, 256)
FIRST = [("resnet_50", "h100_sxm5_80gb", 16), ("alexnet", "tegra_x1", 1), ("mobilenet_v2", "gtx_1080", 2),
         ("bert_base", "l4", 16), ("resnet_50", "xeon_platinum_8480", 1)]  # fmt: skip
ALL = [(net, hw, batch) for net in NETWORKS for hw in DEVICES for batch in BATCHES]

# what one key of the chip moves alone: the bound, and 1 where more is better, -1 where less is
ALONE = {"memory.bandwidth": ("dram", 1), "l2.bandwidth": ("l2", 1), "memory.latency": ("latency", -1),
         "launch.latency": ("launch", -1), "power.tdp": ("power", 1)}  # fmt: skip
CHIP = ("memory.bandwidth", "l2.bandwidth", "l2.size", "memory.latency", "launch.latency", "sm.count", "rate", "clock")
SLACK = 0.012  # of the latency: a library may switch algorithms, and faster memory draws more power; relief knows neither


def solved(net: str, hw: str, batch: int) -> tuple[Request, float, Estimate]:
    """A cell: the request, its latency [s] and what limits it."""
    request = make_request(net, hw, batch=batch)
    found = estimate_of(request, references=False)
    return request, found.latency_s, found


def gains(request: Request, latency: float) -> dict[str, float]:
    """What each change of the chip saves, as a share of the latency; changes that make no device are left out."""
    found = {}
    for name in (*CHIP, "power.tdp"):
        try:
            after = run(with_columns(request, dict(_columns(request, name))))
        except ArchsimError:
            continue
        found[name] = 1.0 - float(after.latency_s[0]) / latency
    return found


def _columns(request: Request, name: str) -> Iterator[tuple[str, np.ndarray]]:
    entries = request.spec.entries
    parts = {key for key in entries if name in ("rate", "clock") and key.startswith(f"{name}.")} - {"clock.turbo"}
    keys = [key for key in entries if key == name or key in parts]
    for key in keys:
        value = float(np.ravel(entries[key].number)[0])
        yield key, np.array([round(value * SPEEDUP) if name == "sm.count" else value * SPEEDUP ** ALONE.get(name, ("", 1))[1]])


@pytest.mark.parametrize(("net", "hw", "batch"), FIRST)
def test_the_named_limit_saves_most(net: str, hw: str, batch: int) -> None:
    check(net, hw, batch)


@pytest.mark.slow
@pytest.mark.parametrize("hw", DEVICES)
@pytest.mark.parametrize("net", NETWORKS)
def test_over_576_cells_the_named_limit_saves_most(net: str, hw: str) -> None:
    for batch in BATCHES:
        check(net, hw, batch)


def check(net: str, hw: str, batch: int) -> None:
    """The law for one cell."""
    request, latency, limits = solved(net, hw, batch)
    cell = f"{net} on {hw}, batch {batch}: {limits.saved_s}"
    saved = {name: time / latency for name, time in limits.saved_s.items()}
    assert limits.limited_by == max(saved, key=lambda name: saved[name]), cell
    assert saved[limits.limited_by] > 0, cell
    assert max(saving for name, saving in saved.items() if name != POWER) <= 1 - 1 / SPEEDUP + 1e-9, cell
    assert limits.host_floor_s <= latency * (1 + 1e-9), cell
    of_chip = gains(request, latency)
    if request.spec.kind == "cpu":
        if limits.limited_by == "launch":  # a team of threads wakes in a time of its own: fewer threads, no faster chip
            return
        assert max(of_chip["clock"], of_chip["memory.bandwidth"]) >= 0.01, f"{cell}: {of_chip}"
        if limits.limited_by in ("compute", "l1", "l2"):
            assert of_chip["clock"] >= of_chip["memory.bandwidth"], f"{cell}: {of_chip}"
        return
    alone = {ALONE[key][0]: gain for key, gain in of_chip.items() if key in ALONE}
    for name, gain in alone.items():
        assert gain >= saved.get(name, 0.0) - SLACK, f"{cell}: {name} really saves {gain:.4f}"
    if limits.limited_by == HOST:
        chip = {name: gain for name, gain in of_chip.items() if name != "clock" or request.limit is None}
        assert max(chip.values()) <= saved[HOST] + SLACK, f"{cell}: {chip}"
    else:
        assert max(of_chip.values()) >= min(0.01, 0.5 * (1.0 - limits.host_floor_s / latency)), f"{cell}: {of_chip}"
    if limits.limited_by in alone:
        others = max(gain for name, gain in alone.items() if name != limits.limited_by)
        assert alone[limits.limited_by] >= others - SLACK, f"{cell}: {alone}"
