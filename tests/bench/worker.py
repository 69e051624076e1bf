"""A process that takes samples of figures when asked: of the version of archsim in whose folder it is started.

Each line of its input names a bench, a figure and whether sizes are tiny, as JSON; each line of its output is a sample or what
is wrong.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import archsim

from .figure import absent


def main() -> None:
    """Answer until the input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a figure prints is no answer
    if not Path(archsim.__file__).is_relative_to(Path.cwd()):
        sys.exit(f"archsim is imported from {archsim.__file__}, not from {Path.cwd()}")
    sample: Callable[[], float] | None = None
    held = None
    for line in sys.stdin:
        bench, name, small = asked = json.loads(line)
        answer: dict[str, object]
        try:
            if asked != held or sample is None:
                sample = None  # what the last figure holds is freed first
                figures = {figure.name: figure for figure in importlib.import_module(f"tests.bench.{bench}").FIGURES}
                sample, held = figures[name].prepare(small), asked
            answer = {"value": sample()}
        except (Exception, SystemExit) as error:
            sample = None
            answer = {"problem": f"{type(error).__name__}: {error}".splitlines()[0], "absent": absent(error)}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
