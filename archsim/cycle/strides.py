"""Loads whose threads are a stride apart: turns of the banks of the L1, and of its tags."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from archsim.cycle.machine import machine_of
from archsim.device.device import Gpu
from archsim.evidence.pattern import AccessPattern

BANKS, WORD = 32, 4  # of the L1: banks of data, and the bytes of each
LINE = 128  # B of a tag of the L1
TAG_BANKS = 4  # of the tags: each looks up one line a clock (NVIDIA developer forum, Pascal L1 cache: 4 tags a clock)
GROUP = (0, 4, 8, 12, 20, 16, 24, 28)  # gpu-strides: elements between the loads that a thread has under way
LANES = 32  # for which gpu-strides counts clocks, on AMD too


def strides(device: Gpu, clock: float, p: AccessPattern) -> float:
    """Clocks of one load of a warp, all in the L1 [clk]: the longest of its turns, over the loads of a group and two warps."""
    machine = machine_of(device, clock)
    narrow = 0.5 * machine.warp / float(device.rate.fp64 or 1.0) if p.element == 8 else 0.0
    least = max(machine.memory_interval / 2, narrow, machine.warp * p.element / machine.l1_bandwidth)
    loads = [addresses(p, warp, offset) for warp in (0, 1) for offset in GROUP]
    return sum(max(least, bank_turns(load, p.element), tag_turns(load)) for load in loads) / len(loads)


def addresses(p: AccessPattern, warp: int = 0, offset: int = 0) -> list[int]:
    """Addresses of a warp [B], `offset` elements from the start."""
    threads = range(LANES * warp, LANES * (warp + 1))
    if p.kernel == "stride":
        return [(int(t % 64 * p.stride) + offset) * p.element for t in threads]
    width, pitch = int(p.words.get("width", "1")), int(p.words.get("pitch", "1"))
    return [(t % width + (t // width % 32 + 1) * pitch + offset) * p.element for t in threads]


def bank_turns(places: Sequence[int], element: int) -> int:
    """Turns of the data banks for the loads of a warp.

    Wider elements go in parts of 128 B; in each part every bank gives one word a turn, to all threads that ask for that word.

    >>> bank_turns([4 * t for t in range(32)], 4), bank_turns([128 * t for t in range(32)], 4)
    (1, 32)
    """
    parts = max(1, element // WORD)
    each = len(places) // parts
    turns = 0
    for part in range(parts):
        own = places[part * each : (part + 1) * each]
        words = {word for place in own for word in range(place // WORD, (place + element) // WORD)}
        turns += _most(word % BANKS for word in words)
    return turns


def tag_turns(places: Sequence[int]) -> int:
    """Turns of the tags for the lines that a warp touches: as many as the fullest of their banks has lines.

    The counters of gpu-strides (A40, A100) show which bank a line has: the exclusive or of all pairs of bits of its number.

    >>> tag_turns([4 * t for t in range(32)]), tag_turns([128 * t for t in range(32)]), tag_turns([132 * t for t in range(32)])
    (1, 8, 8)
    """
    return _most(map(tag_bank, {place // LINE for place in places}))


def tag_bank(line: int) -> int:
    """The bank of a line: the exclusive or of the pairs of bits of its number.

    >>> [tag_bank(line) for line in (0, 1, 4, 5, 27)]
    [0, 1, 1, 0, 0]
    """
    bank = 0
    while line:
        bank ^= line % TAG_BANKS
        line //= TAG_BANKS
    return bank


def _most(banks: Iterable[int]) -> int:
    counts: dict[int, int] = {}
    for bank in banks:
        counts[bank] = counts.get(bank, 0) + 1
    return max(counts.values())
