"""A plugin of pytest that collects tests once, learns which lines each of them reaches, and runs those that reach a mutant.

Every test and every mutant has a child of this process, so that nothing which one of them changes or remembers reaches another.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from .mutants import ROOT, Mutant
from .transplant import changed, put

KILLED, SURVIVED, TIMEOUT, UNREACHED, BROKEN = "killed", "survived", "timeout", "unreached", "broken"
ENDINGS = {10: KILLED, 0: SURVIVED, 77: BROKEN}
LONGEST_S = 4.0  # of a test that is run for every mutant it reaches, while it is watched
BUDGET_S = 15.0  # of all tests that are run for one mutant, as long as they took while they were watched
CPU_S, WALL_S = 60, 300  # a mutant that takes longer is in an endless loop
READERS = "archsim/explain/"  # tests that come here compare values with the source, which stays as it is


@dataclass
class Reach:
    """Where a test comes along, and how long it takes while it is watched."""

    seconds: float
    lines: dict[str, set[int]] = field(default_factory=dict)  # of each file of the room

    def meets(self, file: str, lines: Iterable[int]) -> bool:
        return not self.lines.get(file, set()).isdisjoint(lines)


def in_child(work: Callable[[Path], int], cpu_s: int = CPU_S) -> tuple[int, str]:
    """Exit code of `work` in a child of this process (negative: the signal that ended it), and what it wrote into its file."""
    with tempfile.NamedTemporaryFile() as said:
        child = os.fork()
        if child == 0:
            code = 78
            try:
                quiet = os.open(os.devnull, os.O_RDWR)
                for stream in (0, 1, 2):
                    os.dup2(quiet, stream)
                resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 5))
                signal.alarm(WALL_S)
                code = work(Path(said.name))
            except BaseException:
                Path(said.name).write_text(traceback.format_exc())
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status), Path(said.name).read_text("utf-8", "replace")


def ended(code: int) -> str:
    """What an exit code of a child says of a mutant; one that crashes the interpreter is noticed."""
    if code in (-signal.SIGXCPU, -signal.SIGALRM, -signal.SIGKILL):
        return TIMEOUT
    return KILLED if code < 0 else ENDINGS.get(code, BROKEN)


class Battery:
    """The plugin: `tests` reach what, and what becomes of each of the mutants."""

    def __init__(self, room: str, work: Callable[[Battery], None]) -> None:
        self.folder, self.work = f"archsim/{room}/", work
        self.items: dict[str, pytest.Item] = {}
        self.reach: dict[str, Reach] = {}
        self.apart: list[str] = []  # tests that run no function of the room; they may look at its tables
        self.failed = ""
        self.noticed: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)  # by file and function

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed = self.failed or report.nodeid

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise pytest.UsageError("some tests cannot be collected")
        from hypothesis import Phase, settings

        settings.register_profile("mutants", settings.get_profile("archsim"), phases=(Phase.explicit, Phase.generate))
        settings.load_profile("mutants")
        self.items = {item.nodeid: item for item in session.items}
        gc.collect()
        gc.freeze()  # children then share the pages of what is there
        self.work(self)
        return True

    def run(self, names: Iterable[str]) -> str:
        """Runs tests until one fails, whose name it returns."""
        items = [self.items[name] for name in names]
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.failed:
                break
        return self.failed

    def learn(self, tell: Callable[[str], None], memory: Path) -> None:
        """Which lines every test reaches, remembered in a file while neither the test's file nor the room changes.

        Left out: what takes long, what fails already, what reads the source.
        """
        known = json.loads(memory.read_text()) if memory.exists() else {}
        room = _digest(sorted((ROOT / self.folder).glob("*.py")))
        states = {place: room + _digest([Path(place)]) for place in {str(item.path) for item in self.items.values()}}
        found = {}
        for name, item in self.items.items():
            state = states[str(item.path)]
            if known.get(name, [""])[0] != state:
                begin = time.perf_counter()
                code, said = in_child(lambda place, name=name: self._watched(name, place))
                known[name] = [state, time.perf_counter() - begin, json.loads(said) if code == 0 else {}, code]
                if code:
                    tell(f"left out: {name} fails as it is, {code}: {said[-300:]}")
            found[name] = known[name]
            _, seconds, lines, code = found[name]
            if lines and seconds <= LONGEST_S and not any(file.startswith(READERS) for file in lines):
                self.reach[name] = Reach(seconds=seconds, lines={file: set(reached) for file, reached in lines.items()})
            elif not lines and not code:
                self.apart.append(name)
            elif lines and seconds > LONGEST_S:
                tell(f"left out: {name} takes {seconds:.1f} s")
        memory.write_text(json.dumps(found))

    def _watched(self, name: str, place: Path) -> int:
        """Writes the lines that a test reaches."""
        found: dict[str, set[int]] = {}
        root = f"{ROOT}{os.sep}"
        wanted = (root + self.folder, root + READERS)

        def local(frame: FrameType, event: str, _: Any) -> Any:
            found[frame.f_code.co_filename.removeprefix(root)].add(frame.f_lineno)
            return local

        def called(frame: FrameType, event: str, _: Any) -> Any:
            file = frame.f_code.co_filename
            if not file.startswith(wanted):
                return None
            found.setdefault(file.removeprefix(root), set()).add(frame.f_lineno)
            return local

        sys.settrace(called)
        failed = self.run([name])
        sys.settrace(None)
        place.write_text(failed or json.dumps({file: sorted(lines) for file, lines in found.items()}))
        return 10 if failed else 0

    def tests_for(self, mutant: Mutant) -> list[str]:
        """The tests that reach the statement that a mutant changes: those that noticed others there first, then the quickest."""
        source = (ROOT / mutant.file).read_text("utf-8")
        lines = statement_lines(source, mutant.line)
        seen = self.noticed[mutant.file, mutant.function]
        order = sorted((name for name, reach in self.reach.items() if reach.meets(mutant.file, lines)),
                       key=lambda name: (-seen[name], self.reach[name].seconds))  # fmt: skip
        spent = accumulate(self.reach[name].seconds for name in order)
        return [name for name, seconds in zip(order, spent, strict=True) if seconds <= BUDGET_S] or order[:1]

    def verdict(self, mutant: Mutant, names: list[str] | None = None) -> tuple[str, str] | None:
        """What becomes of a mutant, and the test that noticed it; None where it has to be imported anew."""
        source = (ROOT / mutant.file).read_text("utf-8")
        functions = changed(source, mutant.source, str(ROOT / mutant.file))
        if functions is None:
            return None
        names = self.tests_for(mutant) if names is None else names
        if not names:
            return UNREACHED, ""

        def work(place: Path) -> int:
            module = mutant.file.removesuffix(".py").replace("/", ".")
            if not all(put(module, name, code) for name, code in functions):
                return 77
            place.write_text(self.run(names))
            return 10 if self.failed else 0

        code, said = in_child(work)
        self.noticed[mutant.file, mutant.function][said] += code == 10
        return ended(code), said


def _digest(places: Iterable[Path]) -> str:
    return hashlib.sha256(b"".join(place.read_bytes() for place in places)).hexdigest()[:16]


def statement_lines(source: str, line: int) -> range:
    """The lines of the innermost statement around a line: of a compound statement those of its head."""
    import ast

    best = range(line, line + 1)
    size = 10**9
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.stmt) or isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            continue
        last = node.end_lineno or node.lineno
        if isinstance(node, (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.Match)):
            body = getattr(node, "body", None) or getattr(node, "cases", None)
            last = max(node.lineno, getattr(body[0], "lineno", last) - 1) if body else last
        if node.lineno <= line <= last and last - node.lineno < size:
            best, size = range(node.lineno, last + 1), last - node.lineno
    return best
