"""CPU time of reading what ships: each network, each spec, the whole corpus: `python tests/bench/reading.py`."""

from __future__ import annotations

import time
from collections.abc import Callable

from archsim.device import catalog
from archsim.evidence.readers import read_files
from archsim.trace.file import load, names


def seconds(work: Callable[[], object], rounds: int = 3) -> float:
    """CPU seconds of the best of several rounds."""
    found = []
    for _ in range(rounds):
        begin = time.process_time()
        work()
        found.append(time.process_time() - begin)
    return min(found)


def main() -> None:
    """One line each."""
    for name in ("alexnet", "resnet_200"):
        print(f"network {name}: {1e3 * seconds(lambda name=name: load(name)):.1f} ms")
    print(f"all {len(names())} networks: {seconds(lambda: [load(name) for name in names()]):.2f} s")
    print(f"all {len(catalog.names())} specs: {seconds(lambda: [catalog.find(name) for name in catalog.names()], 1):.2f} s")
    print(f"the corpus: {seconds(read_files, 1):.2f} s")


if __name__ == "__main__":
    main()
