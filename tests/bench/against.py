"""Two versions of archsim beside each other: each figure of one over that of the other, of samples that take turns.

The figures are those of this version's benches. The other version gets a git worktree in a temporary folder, in which this
version's benches replace its own, so that both do the same work. In each folder a process imports archsim from there and takes a
sample when it is asked for one; what the other version cannot do is said, and left out.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from .corpus import OTHER
from .figure import Figure, Sample, absent, shown

ROOT = Path(__file__).parents[2]
BENCHES = Path("tests", "bench")
MARGIN = 0.03  # by which a version may differ from itself


class Failed(Exception):
    """A figure cannot be sampled; `absent` where something else than archsim is missing."""

    def __init__(self, problem: str, absent: bool = False) -> None:
        super().__init__(problem)
        self.absent = absent


class Ratio(NamedTuple):
    """The samples of a figure, in turns: those of the other version and those of this one."""

    old: tuple[float, ...]
    new: tuple[float, ...]

    def quartiles(self) -> tuple[float, float, float]:
        """Of new over old, of the samples that were taken one after the other.

        >>> Ratio((1.0, 1.0, 2.0), (2.0, 1.9, 4.2)).quartiles()
        (1.95, 2.0, 2.05)
        """
        found = [new / old for old, new in zip(self.old, self.new, strict=True)]
        low, middle, high = statistics.quantiles(found * (2 if len(found) < 2 else 1), method="inclusive")
        return low, middle, high

    def verdict(self, rate: bool) -> str:
        """Whether all quartiles and the ratio of the best samples lie beyond `MARGIN` on one side; `rate` where more is better.

        What else the machine does only makes samples worse, so it seldom moves the best ones.

        >>> Ratio((1.0, 1.0, 1.0), (1.9, 2.0, 2.1)).verdict(rate=False), Ratio((1.0, 1.0), (1.0, 1.3)).verdict(rate=False)
        ('worse', '')
        """
        best = max if rate else min
        low, _, high = self.quartiles()
        ends = low, high, best(self.new) / best(self.old)
        more, less = min(ends) > 1.0 + MARGIN, max(ends) < 1.0 - MARGIN
        return ("better" if more == rate else "worse") if more or less else ""


class Worker:
    """A process that samples figures of the version in a folder; it runs `answer_samples`."""

    def __init__(self, tree: Path, other: Path) -> None:
        # Nothing that one version keeps on disk is read by the other, or by either in a later run.
        env = {**os.environ, "PYTHONPATH": str(tree), OTHER: str(other), "ARCHSIM_MEMO": "off"}
        self._process = subprocess.Popen([sys.executable, "-m", "tests.bench.against"], cwd=tree, env=env, text=True,
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)  # fmt: skip

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)  # with the commands that it may have started
        self._process.communicate()

    def sample(self, bench: str, figure: Figure, small: bool) -> float:
        """One sample. Raises Failed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([bench, figure.name, small]), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise Failed("its process has ended")
        answer = json.loads(line)
        if "value" not in answer:
            raise Failed(answer["problem"], answer["absent"])
        return float(answer["value"])


def answer_samples() -> None:
    """Answers each line of the input (a bench, a figure, whether sizes are tiny) with a sample or what is wrong."""
    import archsim

    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a figure prints is no answer
    if not Path(archsim.__file__).is_relative_to(Path.cwd()):
        sys.exit(f"archsim is imported from {archsim.__file__}, not from {Path.cwd()}")
    sample: Sample | None = None
    held, answer = None, dict[str, object]()
    for line in sys.stdin:
        bench, name, small = asked = json.loads(line)
        try:
            if asked != held or sample is None:
                sample = None  # what the last figure holds is freed first
                figures = {figure.name: figure for figure in importlib.import_module(f"tests.bench.{bench}").FIGURES}
                sample, held = figures[name].prepare(small), asked
            answer = {"value": sample()}
        except (Exception, SystemExit) as error:
            answer = {"problem": f"{type(error).__name__}: {error}".splitlines()[0], "absent": absent(error)}
        print(json.dumps(answer), file=answers, flush=True)


@contextmanager
def worktree(rev: str, root: Path = ROOT) -> Iterator[Path]:
    """A folder with the files of a commit, removed at the end, however that comes."""
    with tempfile.TemporaryDirectory(prefix="archsim-bench-") as folder:
        tree = Path(folder) / "tree"
        made = subprocess.run(["git", "-C", str(root), "worktree", "add", "--quiet", "--detach", str(tree), rev],
                              stderr=subprocess.PIPE, text=True)  # fmt: skip
        if made.returncode:
            sys.exit(made.stderr.strip())
        try:
            yield tree
        finally:
            subprocess.run(["git", "-C", str(root), "worktree", "remove", "--force", str(tree)], check=True)


def ratio(old: Worker, new: Worker, bench: str, figure: Figure, rounds: int, small: bool) -> Ratio:
    """Samples of both versions in turns, of which each begins every other round. Raises Failed, of which the note says whose."""
    found: dict[Worker, list[float]] = {old: [], new: []}
    for i in range(rounds):
        for worker in (new, old) if i % 2 else (old, new):
            try:
                found[worker].append(worker.sample(bench, figure, small))
            except Failed as failed:
                failed.add_note("old" if worker is old else "new")
                raise
    return Ratio(tuple(found[old]), tuple(found[new]))


def line(rev: str, old: Worker, new: Worker, bench: str, figure: Figure, rounds: int, small: bool) -> str:
    """What is printed of a figure. Raises Failed where this version cannot be sampled."""
    try:
        found = ratio(old, new, bench, figure, 1 if small else min(rounds, figure.most or rounds), small)
    except Failed as failed:
        if failed.absent:
            return f"not here: {failed}"
        if failed.__notes__ == ["old"]:
            return f"not there in {rev} ({failed})"
        raise
    low, middle, high = found.quartiles()
    was, now = (shown(statistics.median(values), figure.unit) for values in found)
    return f"{was:>14} {now:>14} {middle:7.2f}  ({low:.2f} to {high:.2f}) {'' if small else found.verdict(figure.rate)}".rstrip()


def compare(rev: str, benches: Sequence[str], rounds: int, small: bool) -> None:
    """One line for each figure of some benches."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the folder is removed then, too
    figures = {bench: getattr(importlib.import_module(f"tests.bench.{bench}"), "FIGURES", ()) for bench in benches}
    with worktree(rev) as tree:
        shutil.rmtree(tree / BENCHES, ignore_errors=True)
        shutil.copytree(ROOT / BENCHES, tree / BENCHES, ignore=shutil.ignore_patterns("__pycache__"))
        for folder in (tree, ROOT):  # a first import is no slower for writing byte code
            subprocess.run([sys.executable, "-m", "compileall", "-q", str(folder / "archsim")], check=True)
        with Worker(tree, ROOT) as old, Worker(ROOT, tree) as new:
            print(f"{'figure':<70} {rev[:14]:>14} {'here':>14}   ratio  (quartiles)")
            for bench, all_of_it in figures.items():
                for figure in all_of_it:
                    try:
                        print(f"{bench + ': ' + figure.name:<70} {line(rev, old, new, bench, figure, rounds, small)}", flush=True)
                    except Failed as failed:
                        sys.exit(f"{bench}: {figure.name}: {failed}")


if __name__ == "__main__":
    answer_samples()
