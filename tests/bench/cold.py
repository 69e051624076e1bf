"""Start-up: CPU time of a command in a process of its own, over that of importing numpy."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .figure import Figure, child, report

COMMANDS = ("estimate --net alexnet --hw tegra_x1", "list hw", "--version")


def over_numpy(command: str) -> Callable[[bool], Callable[[], float]]:
    """Each sample starts both, so that a busy machine slows both."""

    def prepare(_: bool) -> Callable[[], float]:
        words = ("-m", "archsim", *command.split())
        child(*words)  # writes the byte code
        return lambda: child(*words)[0] / child("-c", "import numpy")[0]

    return prepare


FIGURES = tuple([Figure(name=f"archsim {command}", unit="x numpy", prepare=over_numpy(command)) for command in COMMANDS])


def main(words: Sequence[str] | None = None) -> None:
    """One line for each command."""
    report(__doc__, FIGURES, words)
