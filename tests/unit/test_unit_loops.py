"""What scalar loops do: rows of a file for each framework, or of a file of one's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from archsim.base.errors import InputError, MissingFile
from archsim.estimation.pipeline import run
from archsim.estimation.request import make_request
from archsim.stack import catalog as stacks
from archsim.stack.loop import UNKNOWN, ScalarLoop, loop_table, loops_of

HEAD = "op,phase,does,source\n"


def written(folder: Path, *rows: str) -> str:
    place = folder / "mine.csv"
    place.write_text(HEAD + "".join(f"{row}\n" for row in rows), "utf-8")
    return str(place)


def test_a_row_of_the_phase_comes_before_that_of_the_op() -> None:
    caffe = stacks.find("caffe-openblas")
    assert caffe.loop_of("relu", "backward") == ScalarLoop(elements=1, operations=8)
    assert caffe.loop_of("relu", "training") == caffe.loop_of("relu", "") == ScalarLoop(elements=1, operations=5)
    assert caffe.loop_of("concat", "") is UNKNOWN
    assert caffe.without(["loops"]).loop_of("relu", "") is UNKNOWN


def test_the_first_file_with_a_row_serves_the_op(tmp_path: Path) -> None:
    found = loops_of((written(tmp_path, "tanh,,steps=2,guessed"), "caffe"))
    assert found["tanh"] == ScalarLoop(steps=2)
    assert found["sigmoid"] == loop_table("caffe")["sigmoid"]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("tanh,,steps,guessed", r"line 2: does: 'steps' has no number above 0"),
        ("tanh,,steps=-1,guessed", r"line 2: does: 'steps=-1' has no number above 0"),
        ("tanh,,hops=1,guessed", r"line 2: does: 'hops' is none of elements, operations, "),
        ("tanh,,,guessed", "line 2: does: is empty"),
        ("tanh,forward,steps=1,guessed", "line 2: must have an op, and a phase: nothing, training or backward"),
        ("tanh,steps=1", "line 2: must have 4 cells"),
    ],
)
def test_a_row_that_says_nothing_is_refused(tmp_path: Path, row: str, problem: str) -> None:
    with pytest.raises(InputError, match=f"mine.csv.*{problem}"):
        loop_table.__wrapped__(written(tmp_path, row))


def test_a_file_that_is_not_there_or_has_other_columns_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match=r"none\.csv: no such file; `loops` names files of traces/kernels/loops"):
        loops_of(("none",))
    (tmp_path / "other.csv").write_text("op,does\n", "utf-8")
    with pytest.raises(InputError, match="line 1: the columns must be op, phase, does, source"):
        loops_of((str(tmp_path / "other.csv"),))


def test_a_loop_of_one_s_own_is_one_row(tmp_path: Path) -> None:
    """A ReLU that takes a power of the C library for each value."""
    rows = written(tmp_path, "relu,,pows=1,guessed")
    mine = tmp_path / "mine.toml"
    mine.write_text(f'schema = 1\nid = "mine"\nlike = "caffe-openblas"\nloops = ["{rows}", "caffe"]\n', "utf-8")
    requests = [make_request("alexnet", "i7_6700k", stack=stack) for stack in ("caffe-openblas", str(mine))]
    usual, own = (float(run(request).latency_s[0]) for request in requests)
    assert own > 1.02 * usual
