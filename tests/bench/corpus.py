"""Reading what ships, and reading and predicting published rows, in CPU time of a process that has done nothing before."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from .figure import Figure, child, cpu_seconds, report

ROOT = Path(__file__).parents[2]
ROWS = Path("reports", "published", "networks.csv")
ONE_OF = 12  # rows that are predicted; which ones follows from their text, so that two versions take the same
OTHER = "ARCHSIM_BENCH_OTHER"  # the folder of the version that takes turns with this one: rows are those that both have


def sampled(most: int | None, trees: Sequence[Path]) -> str:
    """A CSV file of rows that all trees have, in an order of its own."""
    texts = [(tree / ROWS).read_text("utf-8").splitlines() for tree in trees]
    header, *lines = texts[0]
    shared = set(lines).intersection(*texts)
    digests = {line: hashlib.sha256(line.encode()).digest() for line in shared}
    chosen = sorted((line for line in shared if digests[line][0] % ONE_OF == 0), key=lambda line: digests[line])
    return "\n".join([header, *chosen[:most]]) + "\n"


def rows(file: str) -> tuple[float, float]:
    """Rows that are read and predicted per CPU second."""
    from archsim.calibration.constants import default
    from archsim.evidence.readers import read
    from archsim.validation.predict import predict

    cases = []
    reading = cpu_seconds(lambda: cases.extend(read(Path(file))[0]))
    predicting = cpu_seconds(lambda: predict(cases, default()))
    return len(cases) / reading, len(cases) / predicting


def first_rows(folder: str | Path, name: str, count: int) -> Path:
    """Writes the first rows of a shipped file into a folder, under its name."""
    file = Path(folder) / name
    file.write_text("".join((ROOT / ROWS).with_name(name).read_text("utf-8").splitlines(keepends=True)[: count + 1]), "utf-8")
    return file


def specs() -> float:
    """Specs that are read per CPU second."""
    from archsim.device import catalog

    names = catalog.names()
    return len(names) / cpu_seconds(lambda: [catalog.find(name) for name in names])


def networks(name: str) -> Callable[[bool], Callable[[], float]]:
    """Reading a network [s]."""

    def prepare(_: bool) -> Callable[[], float]:
        from archsim.trace.file import load

        load(name)
        return lambda: cpu_seconds(lambda: load(name))

    return prepare


def of_rows(position: int) -> Callable[[bool], Callable[[], float]]:
    """One of the two rates of `rows`, in a process of its own."""

    def prepare(small: bool) -> Callable[[], float]:
        text = sampled(2 if small else None, [ROOT, *filter(None, [Path(os.environ[OTHER]) if OTHER in os.environ else None])])

        def sample() -> float:
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / ROWS.name
                file.write_text(text, "utf-8")
                code = f"from tests.bench.corpus import rows; print(rows({str(file)!r})[{position}])"
                return float(child("-c", code)[1])

        return sample

    return prepare


def of_specs(_: bool) -> Callable[[], float]:
    """The rate of `specs`, in a process of its own."""
    return lambda: float(child("-c", "from tests.bench.corpus import specs; print(specs())")[1])


FIGURES = (
    *(Figure(name=f"network {name}", unit="s", prepare=networks(name)) for name in ("alexnet", "resnet_200")),
    Figure(name="specs of all devices", unit="1/s", rate=True, prepare=of_specs),
    Figure(name="rows of networks, read", unit="1/s", rate=True, prepare=of_rows(0)),
    Figure(name="rows of networks, predicted", unit="1/s", rate=True, prepare=of_rows(1)),
)


def main(words: Sequence[str] | None = None) -> None:
    """One line for each thing that is read or predicted."""
    report(__doc__, FIGURES, words)
