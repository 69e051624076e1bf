"""`python -m tests.fuzz.coverage TARGET SECONDS`: bytes that reach new lines, by atheris (`pip install atheris`)."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from pathlib import Path
from random import Random

SEEDS = 200


def main() -> None:
    """Fuzz one target; libFuzzer prints its progress, and keeps what breaks in the current folder."""
    try:
        import atheris
    except ImportError:
        sys.exit("atheris is not installed: pip install atheris")
    name, seconds = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "60"
    with atheris.instrument_imports(include=["archsim"]):
        from archsim.base.errors import ArchsimError

        from .targets import TARGETS

        target, folder, corpus = TARGETS[name], Path(tempfile.mkdtemp()), Path(tempfile.mkdtemp())
        for number in range(SEEDS):
            data = target.make(Random(number))
            (corpus / str(number)).write_bytes(data)
            with contextlib.suppress(ArchsimError):  # what is imported on the way is watched too
                target.run(data, folder)

    def one(data: bytes) -> None:
        try:
            target.run(data, folder)
        except ArchsimError:
            return

    atheris.Setup([sys.argv[0], f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=4096", str(corpus)], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
