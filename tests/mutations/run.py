"""Puts the faults into the model, one at a time, and runs the test that should notice each.

    python -m tests.mutations.run                          all of them; prints what was caught
    python -m tests.mutations.run cost/energy.py           those of one file, or of one room
    python -m tests.mutations.run "the name of a fault" tests/unit tests/laws      any tests, with this fault

The source on disk stays as it is: the module is compiled with the fault when the tests import it.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType

import pytest

from .faults import FAULTS, Fault

ROOT = Path(__file__).parents[2]
CAUGHT = int(pytest.ExitCode.TESTS_FAILED)
NEVER_IMPORTED = 99
LONGEST_S = 120  # a safety net: a fault may make a loop endless
SHARED = ("numpy", "hypothesis.strategies", "pydantic", "simpy", "scipy.special")  # imported once for all faults


class FaultyLoader(SourceFileLoader):
    """Compiles a module from its source with the fault in it."""

    def __init__(self, name: str, path: str, fault: Fault) -> None:
        super().__init__(name, path)
        self.fault = fault

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.fault.put_into(Path(self.path).read_text("utf-8")), self.path, "exec")


class FaultyFinder(MetaPathFinder):
    """Finds the one module that has the fault; every other module is found as always."""

    def __init__(self, fault: Fault) -> None:
        self.fault, self.found = fault, False

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname != self.fault.module:
            return None
        self.found = True
        place = str(ROOT / self.fault.file)
        return spec_from_file_location(fullname, place, loader=FaultyLoader(fullname, place, self.fault))


def run_with(fault: Fault, words: Sequence[str]) -> int:
    """pytest's exit code with the fault, which stays in this process; `NEVER_IMPORTED` where no test has asked for the module."""
    assert fault.module not in sys.modules
    finder = FaultyFinder(fault)
    sys.meta_path.insert(0, finder)
    plain = ["-q", "-p", "no:cacheprovider", "--assert=plain", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    code = int(pytest.main([*plain, "--rootdir", str(ROOT), *words]))
    return code if finder.found else NEVER_IMPORTED


def tried(fault: Fault) -> tuple[int, str]:
    """Exit code and output of the test that should notice the fault, in a child of this process."""
    with tempfile.TemporaryFile() as heard:
        child = os.fork()
        if child == 0:
            os.dup2(heard.fileno(), 1)
            os.dup2(heard.fileno(), 2)
            signal.alarm(LONGEST_S)
            code = 70
            try:
                code = run_with(fault, ["-x", "--tb=line", fault.caught_by])
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        _, status = os.waitpid(child, 0)
        heard.seek(0)
        return os.waitstatus_to_exitcode(status), heard.read().decode("utf-8", "replace")


def main(words: Sequence[str]) -> int:
    """0 where every fault was caught."""
    named = [fault for fault in FAULTS if fault.name in words[:1]]
    if named:
        return run_with(named[0], words[1:])
    for module in SHARED:
        __import__(module)
    escaped = 0
    for fault in FAULTS:
        if words and not fault.file.startswith(tuple(f"archsim/{word}" for word in words)):
            continue
        code, heard = tried(fault)
        escaped += code != CAUGHT
        print(f"{'caught ' if code == CAUGHT else 'ESCAPED'}  {fault.file}: {fault.name}  ({fault.caught_by})", flush=True)
        if code != CAUGHT:
            print(f"  {fault.right!r} as {fault.wrong!r}: pytest left with {code}\n{heard}")
    return int(escaped > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
