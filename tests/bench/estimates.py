"""Warm estimates: CPU time of each of many in one process, of devices that were not asked for before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from .figure import Figure, cpu_seconds, report

GPUS = ("gtx_1080", "titan_x_maxwell", "tesla_k40")
NETS = {"alexnet": 150, "resnet_50": 40}  # estimates in a sample


def changed(net: str, **choices: Any) -> Callable[[bool], Callable[[], float]]:
    """Estimates of a GTX 1080 with another bandwidth each time [s]."""

    def prepare(small: bool) -> Callable[[], float]:
        import archsim
        from archsim.base.errors import ArgumentError

        number = count()

        def ask(word: str) -> None:
            setting: dict[str, Any] = {word: {"memory.bandwidth": f"{200 + 0.01 * next(number):.2f} GB/s"}}
            answer = archsim.estimate(net, "gtx_1080", **setting, **choices)
            _ = answer.latency_s, answer.energy_j, answer.memory_bytes

        word = "set"
        try:
            ask(word)
        except ArgumentError:  # its name until the functions took the words of the commands
            word = "settings"
            ask(word)
        turns = 2 if small else NETS[net]

        def work() -> None:
            for _ in range(turns):
                ask(word)

        return lambda: cpu_seconds(work) / turns

    return prepare


def other_batches(net: str) -> Callable[[bool], Callable[[], float]]:
    """Estimates of three GPUs in turn with eight batches [s]."""

    def prepare(small: bool) -> Callable[[], float]:
        import archsim

        cells = [(hw, batch) for batch in range(1, 9) for hw in GPUS][: 2 if small else None]

        def ask() -> None:
            for hw, batch in cells:
                _ = archsim.estimate(net, hw, batch=batch).latency_s

        ask()
        return lambda: cpu_seconds(ask) / len(cells)

    return prepare


FIGURES = (
    *(Figure(name=f"{net}, another bandwidth each time", unit="s", prepare=changed(net)) for net in NETS),
    *(Figure(name=f"{net}, three GPUs, eight batches", unit="s", prepare=other_batches(net)) for net in NETS),
    Figure(name="resnet_50, training step, another bandwidth each time", unit="s",
           prepare=changed("resnet_50", task="training_step")),
    Figure(name="alexnet, fidelity event, another bandwidth each time", unit="s", prepare=changed("alexnet", fidelity="event")),
)  # fmt: skip


def main(words: Sequence[str] | None = None) -> None:
    """One line for each kind of estimate."""
    report(__doc__, FIGURES, words)
