"""Reading what ships, predicting published rows, and reading profiles of PyTorch, in CPU time."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from functools import partial
from pathlib import Path

from .figure import Figure, Sample, cpu_seconds, in_child, peak_memory, rate

ROOT = Path(__file__).parents[2]
ROWS = Path("reports", "published", "networks.csv")
ONE_OF = 12  # rows that are predicted; which ones follows from their text, so that two versions take the same
OTHER = "ARCHSIM_BENCH_OTHER"  # the folder of the version that takes turns with this one: rows are those that both have
PROFILE = 30e6  # B


def sampled(most: int | None) -> str:
    """A CSV file of some rows of networks."""
    trees = [ROOT, Path(os.environ.get(OTHER, ROOT))]
    (header, *lines), others = ((tree / ROWS).read_text("utf-8").splitlines() for tree in trees)
    digests = {hashlib.sha256(line.encode()).digest(): line for line in set(lines) & set(others)}
    return "\n".join([header, *[digests[key] for key in sorted(digests) if key[-1] % ONE_OF == 0][:most], ""])


def first_rows(folder: str | Path, name: str, count: int) -> Path:
    """Writes the first rows of a shipped file into a folder, under its name."""
    file = Path(folder) / name
    file.write_text("".join((ROOT / ROWS).with_name(name).read_text("utf-8").splitlines(keepends=True)[: count + 1]), "utf-8")
    return file


def rows(most: int | None, predicted: bool) -> float:
    """Rows that are read, or predicted, per CPU second."""
    from archsim.calibration.constants import default
    from archsim.evidence.readers import read
    from archsim.validation.predict import predict

    cases = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / ROWS.name
        file.write_text(sampled(most), "utf-8")
        reading = cpu_seconds(lambda: cases.extend(read(file)[0]))
    return len(cases) / (cpu_seconds(lambda: predict(cases, default())) if predicted else reading)


def specs() -> float:
    """Specs that are read per CPU second."""
    from archsim.device import catalog

    names = catalog.names()
    return len(names) / cpu_seconds(lambda: [catalog.find(name) for name in names])


def profile(size: float, memory: bool) -> float:
    """Bytes of a profile that are read and compared per CPU second [MB/s], or the memory of this process after that [MB]."""
    from archsim.study.profiled import compare_profile

    from ..trace.kineto import events

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trace.json"
        with file.open("w", encoding="utf-8") as stream:
            stream.write('{"schemaVersion": 1, "traceEvents": [\n')
            for number, event in enumerate(events(10**9, layers=8)):
                stream.write((",\n" if number else "") + json.dumps(event, indent=2))
                if stream.tell() > size and event["name"].startswith("ProfilerStep"):
                    break
            stream.write("\n]}\n")
        took = cpu_seconds(lambda: compare_profile(str(file), "a100_sxm4_40gb", stack="pytorch-2"))
    return peak_memory() if memory else size / took / 1e6


def network(name: str, small: bool) -> Sample:
    """Reading a network [s]."""
    from archsim.trace.file import load

    return partial(cpu_seconds, partial(load, name))


def of_rows(predicted: bool, small: bool) -> Sample:
    """Of a process that has done nothing before."""
    return partial(in_child, "corpus", f"rows({2 if small else None}, {predicted})")


def of_profile(memory: bool, small: bool) -> Sample:
    """Of a process that has done nothing before."""
    return partial(in_child, "corpus", f"profile({1e5 if small else PROFILE}, {memory})")


FIGURES = (
    *(Figure(name=f"network {name}", unit="s", prepare=partial(network, name)) for name in ("alexnet", "resnet_200")),
    rate("specs of all devices", lambda small: partial(in_child, "corpus", "specs()")),
    rate("rows of networks, read", partial(of_rows, False)),
    rate("rows of networks, predicted", partial(of_rows, True)),
    Figure(name="profile of PyTorch", unit="MB/s", prepare=partial(of_profile, False), rate=True, most=3),
    Figure(name="memory for a profile of PyTorch", unit="MB", prepare=partial(of_profile, True), most=1),
)
