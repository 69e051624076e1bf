"""Estimates: start-up of commands over that of numpy, and warm ones, of devices that were not asked for before, in CPU time."""

from __future__ import annotations

from functools import partial
from itertools import count
from typing import Any

from .figure import Figure, Sample, child, cpu_seconds

COMMANDS = ("estimate --net alexnet --hw tegra_x1", "list hw", "--version")
GPUS = ("gtx_1080", "titan_x_maxwell", "tesla_k40")
NETS = {"alexnet": 150, "resnet_50": 40}  # estimates in a sample


def start(command: str, small: bool) -> Sample:
    """A command over the import of numpy; each sample starts both, so that a busy machine slows both."""
    words = ("-m", "archsim", *command.split())
    child(*words)
    return lambda: child(*words)[0] / child("-c", "import numpy")[0]


def changed(net: str, choices: dict[str, Any], small: bool) -> Sample:
    """An estimate of a GTX 1080 with another bandwidth each time [s]."""
    import archsim
    from archsim.base.errors import ArgumentError

    number, turns = count(), 2 if small else NETS[net]

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

    def work() -> None:
        for _ in range(turns):
            ask(word)

    return lambda: cpu_seconds(work) / turns


def other_batches(net: str, small: bool) -> Sample:
    """An estimate of three GPUs in turn with eight batches [s]."""
    import archsim

    cells = [(hw, batch) for batch in range(1, 9) for hw in GPUS][: 2 if small else None]

    def work() -> None:
        for hw, batch in cells:
            _ = archsim.estimate(net, hw, batch=batch).latency_s

    work()
    return lambda: cpu_seconds(work) / len(cells)


CHANGED: dict[str, tuple[str, dict[str, Any]]] = {
    "alexnet": ("alexnet", {}), "resnet_50": ("resnet_50", {}), "resnet_50, training": ("resnet_50", {"task": "training_step"}),
    "alexnet, fidelity event": ("alexnet", {"fidelity": "event"}),
}  # fmt: skip
FIGURES = (
    *(Figure(name=f"archsim {command}", unit="x numpy", prepare=partial(start, command)) for command in COMMANDS),
    *(
        Figure(name=f"{name}, another bandwidth each time", unit="s", prepare=partial(changed, *of))
        for name, of in CHANGED.items()
    ),
    *(Figure(name=f"{net}, three GPUs, eight batches", unit="s", prepare=partial(other_batches, net)) for net in NETS),
)
