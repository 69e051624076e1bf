"""What `archsim` says without a command: what this computer is, and what to ask of it first."""

from __future__ import annotations

from pathlib import Path

from archsim.base.errors import Unsupported
from archsim.base.units import show_capacity
from archsim.detect.system import allowed_here, read_computer, words_of

ASKED = (
    ("archsim estimate --net resnet_50 --hw {hw}", "how long a network takes on it, and why"),
    ("archsim compare --net resnet_50 --hw {hw},l4,rtx_4090 --batch 16", "beside two GPUs"),
    ("archsim manual getting-started", "the first ten minutes; archsim --help lists all commands"),
)


def hello(root: Path = Path("/")) -> str:
    """This computer in a line, and three commands; of another one below `root`, for a test."""
    said, hw = "This computer cannot be described (only Linux tells what is needed); i7_6700k stands for it.", "i7_6700k"
    try:
        computer = read_computer(root, allowed_here() if root == Path("/") else None)
    except Unsupported:
        pass
    else:
        cores = f"{computer.cores} {'core' if computer.cores == 1 else 'cores'}"
        memory = [] if computer.memory is None else [f"{show_capacity(computer.memory.value, 2)} of memory"]
        gpus = [line.partition(":")[2].strip() for file in sorted(root.glob("proc/driver/nvidia/gpus/*/information"))
                for line in words_of(file).splitlines() if line.startswith("Model:")]  # fmt: skip
        said, hw = f"This computer: {', '.join([computer.name or 'a CPU', cores, *memory, *gpus])}.", "host"
    commands = [(line.format(hw=hw), what) for line, what in ASKED]
    width = max(len(line) for line, _ in commands)
    shown = "".join(c if c.isprintable() else "?" for c in said)
    return "\n".join([shown, "", *(f"  {line:{width}}  # {what}" for line, what in commands)])
