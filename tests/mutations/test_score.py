"""The machinery of the mutation score: what is changed, what is left out, and that a mutant is noticed or missed."""

from __future__ import annotations

import ast
import os
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest
from cosmic_ray.mutating import mutate_code

from . import battery, mutants, score
from .battery import KILLED, SURVIVED, TIMEOUT, Battery, Reach, in_child, statement_lines
from .operators import SwapBranches, SwapFunction, SwapMembership
from .transplant import changed, put

PLAIN = '''"""Words."""
from __future__ import annotations
from dataclasses import dataclass
from functools import cached_property

HALF: float | None = 0.5
Pair = dict[str, float | None]


@dataclass(frozen=True, kw_only=True)
class Box:
    """A box."""

    side: float

    @cached_property
    def area(self) -> float:
        """Its area."""
        return self.side * self.side


def least(x: float, y: float | None = None, word: str = "a") -> float:
    """The least."""
    assert x != 3
    if word == "b":
        raise ValueError(f"{x + 1} is wrong")
    return min(x, y or 2.0)
'''


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A small module in a folder that stands for the checkout."""
    folder = tmp_path / "archsim" / "room"
    folder.mkdir(parents=True)
    (folder / "plain.py").write_text(PLAIN, "utf-8")
    for each in (mutants, battery):
        monkeypatch.setattr(each, "ROOT", tmp_path)
    made = ModuleType("archsim.room.plain")
    made.__file__ = str(folder / "plain.py")
    monkeypatch.setitem(sys.modules, made.__name__, made)
    exec(compile(PLAIN, made.__file__, "exec"), vars(made))
    return made


FILE = "archsim/room/plain.py"


@pytest.mark.parametrize("operator", [SwapFunction, SwapBranches, SwapMembership])
def test_our_operators_do_what_their_examples_say(operator: type) -> None:
    for example in operator.examples():  # type: ignore[attr-defined]
        assert mutate_code(example.pre_mutation_code, operator(), example.occurrence) == example.post_mutation_code


@pytest.mark.parametrize("source", ["import minimum\n", "def floor(x): ...\n", "x = sum\n", "from a import any\n"])
def test_a_name_that_is_not_called_is_no_function_to_swap(source: str) -> None:
    assert mutate_code(source, SwapFunction(), 0) is None


def test_what_decides_no_value_is_left_as_it_is(module: ModuleType) -> None:
    """Types, options of decorators, checks, what an error says; and the order of words."""
    found = mutants.mutants_at(mutants.sites_of(FILE))
    lines = Counter(PLAIN.splitlines()[mutant.line - 1].strip() for mutant in found)
    assert lines == {
        "HALF: float | None = 0.5": 2,
        "return self.side * self.side": 3,
        'if word == "b":': 2,  # != and not
        "return min(x, y or 2.0)": 4,
    }
    assert {(mutant.function, mutant.right, mutant.wrong) for mutant in found if "side" in mutant.right} == {
        ("Box.area", "return self.side * self.side", f"return self.side {sign} self.side") for sign in "+-/"
    }
    assert len({mutant.key for mutant in found}) == len(found)
    for mutant in found:
        ast.parse(mutant.source)


def test_code_is_put_into_functions_and_nothing_else(module: ModuleType) -> None:
    box, least = module.Box, module.least
    for mutant in mutants.mutants_at(mutants.sites_of(FILE)):
        functions = changed(PLAIN, mutant.source, "plain.py")
        if mutant.function == "":
            assert functions is None  # a constant was read at import
        else:
            assert functions is not None
            assert [name for name, _ in functions] == [mutant.function]
    ((name, code),) = changed(PLAIN, PLAIN.replace("self.side * self.side", "self.side + self.side"), "plain.py") or ()
    assert put(module.__name__, name, code)
    assert box(side=3.0).area == 6.0
    ((name, code),) = changed(PLAIN, PLAIN.replace("min(x", "max(x"), "plain.py") or ()
    assert put(module.__name__, name, code)
    assert least(1.0) == 2.0


def test_a_statement_has_the_lines_of_its_head_or_all_of_its_own() -> None:
    source = "x = (1 +\n     2)\nif (x and\n        x):\n    y = 3\n"
    assert [list(statement_lines(source, line)) for line in (1, 2, 3, 4, 5)] == [[1, 2], [1, 2], [3, 4], [3, 4], [5]]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_mutant_is_noticed_missed_or_runs_for_ever(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Battery("room", lambda battery: None)
    made.reach = {"a": Reach(seconds=0.1, lines={FILE: set(range(1, 99))}), "far": Reach(seconds=0.0, lines={FILE: {1}})}

    def run(names: list[str]) -> str:
        assert names == ["a"]
        made.failed = "a" if module.least(1.0) != 1.0 else ""
        return made.failed

    monkeypatch.setattr(made, "run", run)
    found = {mutant.wrong: mutant for mutant in mutants.mutants_at(mutants.sites_of(FILE)) if mutant.function == "least"}
    assert made.verdict(found["return max(x, y or 2.0)"]) == (KILLED, "a")
    assert made.verdict(found["return min(x, y or 3.0)"]) == (SURVIVED, "")
    assert module.least(1.0) == 1.0  # here nothing has changed
    assert in_child(lambda place: [None for _ in iter(int, 1)] and 0, cpu_s=1)[0] < 0  # type: ignore[return-value]


def test_the_score_leaves_out_equivalent_mutants_and_names_those_that_were_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(score, "REPORT", tmp_path)
    monkeypatch.setattr(score, "EQUIVALENT", tmp_path / "equivalent.csv")
    (tmp_path / "equivalent.csv").write_text("file,function,right,wrong,reason\na.py,f,x,y,same\n", "utf-8")
    rows = [["a.py", "f", "x", wrong, 3, "Op", verdict, ""]
            for wrong, verdict in (("y", SURVIVED), ("z", SURVIVED), ("u", KILLED), ("v", TIMEOUT), ("w", KILLED))]  # fmt: skip
    assert score.written("room", rows, sampled=False) == 0.75  # type: ignore[arg-type]
    table = (tmp_path / "room.csv").read_text("utf-8").splitlines()
    assert table[1:] == ["a.py,5,2,1,1,1,0.750", "archsim/room,5,2,1,1,1,0.750"]
    assert (tmp_path / "room-survivors.csv").read_text("utf-8").splitlines()[1:] == ["a.py,3,f,Op,x,z"]


def test_every_equivalent_mutant_is_one_of_the_code_as_it_is() -> None:
    """A line that has changed is reviewed again."""
    known = score.equivalent()
    assert known
    for (file, function, right, wrong), reason in known.items():
        lines = [line.strip() for line in (score.ROOT / file).read_text("utf-8").splitlines()]
        assert right in lines or right in " ".join(lines), f"{file} {function}: {right}"
        assert wrong != right
        assert len(reason.split()) > 3
