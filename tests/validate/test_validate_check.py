"""`archsim validate --add` accepts what belongs into the corpus and names every problem of what does not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from archsim.evidence.family import malformed
from archsim.evidence.readers import family_of
from archsim.evidence.shipped import shipped_files
from archsim.evidence.sources import sources
from archsim.evidence.table import read_table
from archsim.validation.check import check

from ..each import each
from ..measurements import HEAD, ROW

Write = Callable[..., str]
Run = Callable[..., tuple[int, str, str]]


def changed(**cells: str) -> str:
    return ",".join((dict(zip(HEAD.split(","), ROW.split(","), strict=True)) | cells).values())


def test_a_sound_file_says_where_to_put_it(write: Write, run: Run) -> None:
    code, out, err = run("validate", "--add", write(ROW, changed(batch="32"), name="card.csv"))
    assert (code, err) == (0, "")
    assert "2 rows of networks, 2 values that can be predicted, no problems" in out
    assert "reports/published/card.csv" in out
    assert "sources.toml: me" in out


def test_a_taken_name_is_said(write: Write, run: Run) -> None:
    assert "there already" in run("validate", "--add", write(ROW, name="networks.csv"))[1]


PROBLEMS = {
    "hardware": (changed(hardware="gtx1081"), "line 2: unknown hardware 'gtx1081'; nearest: gtx_1080"),
    "network": (changed(network="alexnot"), "line 2: unknown network 'alexnot'; nearest: alexnet"),
    "stack": (changed(stack="caffe-cudnn55"), "line 2: unknown stack 'caffe-cudnn55'; nearest: caffe-cudnn"),
    "task": (changed(task="training"), "line 2: task 'training' is not one of"),
    "metric": (changed(metric="flops"), "line 2: metric 'flops' is not one of"),
    "precision": (changed(precision="fp12"), "line 2: precision 'fp12' is not one of"),
    "split": (changed(split="train"), "line 2: split 'train' is not calibrate or test"),
    "threads": (changed(threads="many"), "line 2: threads 'many' is not a whole number"),
    "repeat": (f"{ROW}\n{changed(batch='2')}\n{ROW}", "line 4: repeats line 2"),
    "contradiction": (
        f"{ROW}\n{changed(metric='throughput_per_s', value='800')}",
        "line 3: throughput 800 contradicts line 2, where batch / latency is 1600",
    ),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_each_problem_is_told_with_its_line(name: str, write: Write, run: Run) -> None:
    content, said = PROBLEMS[name]
    code, out, err = run("validate", "--add", write(content))
    assert (code, out) == (65, "")
    assert said in err
    assert len(err.splitlines()) == 1


def test_a_rate_that_agrees_with_the_latency_is_accepted(write: Write, run: Run) -> None:
    assert run("validate", "--add", write(ROW, changed(metric="throughput_per_s", value="1610")))[0] == 0


def test_several_problems_come_in_the_order_of_lines(write: Write, run: Run) -> None:
    path = write(changed(hardware="nothing", task="no"), ROW, changed(network="x"), ROW)
    lines = [line.strip() for line in run("validate", "--add", path)[2].splitlines()]
    assert "4 problems" in lines[0]
    assert [line.split(":")[0] for line in lines[1:]] == ["line 2", "line 2", "line 4", "line 5"]


def test_a_measured_repeat_from_another_place_is_no_duplicate(write: Write, run: Run) -> None:
    path = write(f"{ROW},run 1", f"{ROW},run 2", head=f"{HEAD},source_ref")
    assert run("validate", "--add", path)[0] == 0


@each("file", shipped_files())
def test_the_shipped_corpus_passes_its_own_checks(file: object) -> None:
    table = read_table(file)  # type: ignore[arg-type]
    family = family_of(table)
    assert malformed(table, family) == {}
    assert check(table, family) == []
    named = {row.cells.get("source") or row.cells["source_id"] for row in table.rows}
    assert named <= set(sources())
