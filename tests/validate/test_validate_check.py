"""What a measurement file must be: `--add` accepts what belongs into the corpus, and each problem is one line with its number."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from archsim.evidence.family import malformed, shipped_files
from archsim.evidence.readers import family_of, read
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
    assert "there already" in run("validate", "--add", write(ROW, name="networks.csv"))[1]


BROKEN = {
    "semicolons": (f"{HEAD}\n{ROW}\n".replace(",", ";"), "line 1: columns are separated by semicolons"),
    "tabs": (f"{HEAD}\n{ROW}\n".replace(",", "\t"), "line 1: columns are separated by tabs"),
    "decimal comma": (f"{HEAD}\n" + changed(value='"0,01"') + "\n", "line 2: value '0,01' has a decimal comma"),
    "missing column": (f"{HEAD.replace(',value', '')}\n", "line 1: "),
    "text": (f"{HEAD}\n{ROW}\n" + changed(value="fast") + "\n", "line 3: value 'fast' is not a number"),
    "overflow": (f"{HEAD}\n" + changed(value="1e400") + "\n", "line 2: value '1e400' is not finite"),
    "nan": (f"{HEAD}\n" + changed(value="nan") + "\n", "line 2: value 'nan' is not a number"),
    "negative": (f"{HEAD}\n" + changed(value="-1") + "\n", "line 2: value '-1' is negative"),
    "zero": (f"{HEAD}\n" + changed(value="0") + "\n", "line 2: value '0' is not above zero"),
    "underscore": (f"{HEAD}\n" + changed(value="1_0") + "\n", "line 2: value '1_0' is not a number"),
    "half a batch": (f"{HEAD}\n" + changed(batch="1.5") + "\n", "line 2: batch '1.5' is not a whole number from 1"),
    "huge batch": (f"{HEAD}\n" + changed(batch="1e30") + "\n", "line 2: batch '1e30' is not a whole number"),
    "formula": (f"{HEAD}\n" + changed(source="=cmd()") + "\n", "line 2: source begins with '='"),
    "long_source": (f"{HEAD}\n" + changed(source="nvidia_" * 400) + "\n", "line 2: source is longer than 2000 characters"),
    "formula number": (f"{HEAD}\n" + changed(value="=1+1") + "\n", "line 2: value '=1+1' is not a number"),
    "ragged": (f"{HEAD}\n{ROW}\n{ROW},more\n", "line 3: 14 cells, but the header has 13 columns"),
    "short": (f"{HEAD}\n{ROW.rsplit(',', 1)[0]}\n", "line 2: 12 cells, but the header has 13 columns"),
    "line break": (f"{HEAD}\n" + changed(source='"a\nb"') + f"\n{ROW}\n", "line 2: a cell with a line break"),
    "open quote": (f'{HEAD}\n{ROW}\n"{ROW}\n', "line 3: "),
    "no value": (f"{HEAD}\n" + changed(value="") + "\n", "line 2: no value in value"),
    "no network": (f"{HEAD}\n" + changed(network=" ") + "\n", "line 2: network is empty"),
    "twice": (f"{HEAD},value\n{ROW},1\n", "line 1: column 'value' stands twice"),
    "NUL": (f"{HEAD}\n{ROW}\n\0{ROW}\n", "line 3: a NUL byte"),
    "NULs": (f"{HEAD}\n\0\0\n{ROW}\n\0", "line 4: a NUL byte"),
    "not UTF-8": (HEAD.encode() + b"\n" + ROW.encode() + b"\n\xff\xfe\n", "line 3: is not UTF-8"),
    "no rows": (f"{HEAD}\n", "line 1: a header and no rows"),
    "empty": ("", "is empty"),
    "blank": (" \n\n", "is empty"),
    "other": ("name,colour\na,b\n", "line 1: no measurement file"),
}
ROWS = ("decimal comma", "text", "overflow", "nan", "negative", "zero", "underscore", "half a batch", "huge batch", "formula",
        "long_source", "formula number", "no value", "no network")  # of which each row stands alone; others break the file


@each("case", BROKEN)
def test_broken_file_is_refused_with_its_line(case: str, write: Write, run: Run) -> None:
    content, said = BROKEN[case]
    path = write(content, raw=True)
    code, out, err = run("validate", "--add", path)
    assert (code, out) == (65, "")
    assert said in err
    assert len(err.splitlines()) <= 3
    code, out, err = run("validate", "--measurements", path, "--baseline", "none")
    line, _, reason = said.partition(": ")
    of_a_row = case in ROWS
    assert code == (65 if not of_a_row else 0 if ROW in content else 1)
    assert (f"{reason}" in out and f"({line})" in out) if of_a_row else said in err


def test_a_byte_order_mark_and_windows_line_ends_are_accepted(write: Write) -> None:
    cases, skips = read(write(b"\xef\xbb\xbf", f"{HEAD}\r\n{ROW}\r\n\r\n", raw=True))
    assert (len(cases), len(skips)) == (1, 0)
    assert cases[0].measured == 0.01


PROBLEMS = {
    "hardware": (changed(hardware="gtx1081"), "line 2: unknown hardware 'gtx1081'; nearest: gtx_1080"),
    "network": (changed(network="alexnot"), "line 2: unknown network 'alexnot'; nearest: alexnet"),
    "stack": (changed(stack="caffe-cudnn55"), "line 2: unknown stack 'caffe-cudnn55'; nearest: caffe-cudnn"),
    "task": (changed(task="training"), "line 2: task 'training' is not one of"),
    "metric": (changed(metric="flops"), "line 2: metric 'flops' is not one of"),
    "precision": (changed(precision="fp12"), "line 2: precision 'fp12' is not one of"),
    "split": (changed(split="train"), "line 2: split 'train' is not calibrate or watched or test"),
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
