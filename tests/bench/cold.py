"""CPU time of a cold `archsim estimate` beside that of importing numpy, in one run: `python tests/bench/cold.py [ROUNDS]`."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys

ESTIMATE = ("-m", "archsim", "estimate", "--net", "alexnet", "--hw", "tegra_x1")
NUMPY = ("-c", "import numpy")


def seconds(words: tuple[str, ...]) -> float:
    """CPU seconds, user and system, of one process of Python."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Interleave the two, so that a busy machine slows both."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    pairs = [(seconds(ESTIMATE), seconds(NUMPY)) for _ in range(rounds)]
    estimates, numpys = zip(*pairs, strict=True)
    ratio = statistics.median(a / b for a, b in pairs)
    print(f"cold estimate {statistics.median(estimates):.3f} s, numpy {statistics.median(numpys):.3f} s, ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
