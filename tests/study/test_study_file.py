"""Studies as files: what is read and refused, the same bytes again, and that the shipped reports are what they give now."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest

import archsim
from archsim.answers.study import PARTS as MADE_BY
from archsim.answers.study import study_files
from archsim.base.errors import InputError
from archsim.study.file import FORMS, load

SHIPPED = Path(__file__).parents[2] / "reports" / "studies"
HEAD = 'schema = 1\ntitle = "T"\nquestion = "Q?"\n'
PART = '[[part]]\nname = "a"\ntitle = "A"\nnet = ["alexnet"]\nhw = ["tegra_x1"]\n'
PARTS = {
    "grid": 'vary = ["memory.bandwidth=10GB/s:40GB/s:x2", "sm.count=1,2"]\nx = "memory.bandwidth"\nlines = "sm.count"\n',
    "sensitivity": "top = 3\n",
    "whatif": 'change = { "memory.bandwidth" = "51.2 GB/s" }\nto = { batch = 2 }\n',
    "batches": 'batches = "1,2"\n',
    "search": 'vary = ["sm.count=1:4:1"]\nminimise = ["latency"]\n',
}


def written(folder: Path, kind: str, more: str | None = None, part: str = PART) -> Path:
    path = folder / "study.toml"
    path.write_text(f'{HEAD}{part}kind = "{kind}"\n{PARTS[kind] if more is None else more}', "utf-8")
    return path


def test_every_kind_has_a_form_and_a_section() -> None:
    assert set(FORMS) == set(MADE_BY) == set(PARTS)


@pytest.mark.parametrize("kind", list(PARTS))
def test_a_part_gives_a_report_and_a_table_twice_the_same(tmp_path: Path, kind: str) -> None:
    study = load(written(tmp_path, kind))
    files = study_files(study)
    assert files == study_files(study)
    assert files["README.md"].startswith("# T\n\nQ?\n")
    assert any(name.endswith(".csv") and text.count("\n") > 1 for name, text in files.items())
    for picture in re.findall(r"\]\(([^)]+)\)", files["README.md"]):
        assert files[picture].startswith("<svg")


def test_a_grid_tells_what_doubling_does(tmp_path: Path) -> None:
    report = study_files(load(written(tmp_path, "grid")))["README.md"]
    once, twice = (archsim.estimate("alexnet", "tegra_x1", scale=scale).latency_s for scale in ({}, {"memory.bandwidth": 2.0}))
    assert f"| memory.bandwidth | alexnet on tegra_x1 | x {twice / once:.3f} |" in report  # as whatif says


def test_numbers_of_a_table_are_numbers_and_no_formulas(tmp_path: Path) -> None:
    files = study_files(load(written(tmp_path, "sensitivity")))
    rows = [*csv.DictReader(io.StringIO(files["a_alexnet_tegra_x1.csv"]))]
    found = {row["key"]: row["elasticity_latency_s"] for row in rows}
    assert float(found["memory.bandwidth"]) < 0
    assert all(float(value) <= 0 for key, value in found.items() if value and key.startswith("rate."))


@pytest.mark.parametrize(
    ("kind", "more", "text"),
    [
        ("grid", 'vary = ["memory.bandwith=1GB/s,2GB/s"]\nx = "memory.bandwith"\n', "part a: unknown gpu knob"),
        ("grid", 'vary = ["sm.count=1,2"]\nx = "l2.size"\n', "l2.size: is drawn and not varied"),
        ("grid", 'vary = ["sm.count=1,2"]\nx = "sm.count"\ny = "area"\n', "no output of a grid"),
        ("grid", 'vary = ["clock=1GHz:2GHz:30000lin"]\nx = "clock"\n', "more than 20,000"),
        ("search", 'vary = ["sm.count=1:4:1"]\n', "minimise: name what is wanted"),
        ("whatif", 'change = { "memory.bandwidth" = "fast" }\n', "memory.bandwidth"),
        ("batches", 'batches = "8:1:x2"\n', "comes before"),
    ],
)
def test_a_part_that_cannot_be_computed_is_named(tmp_path: Path, kind: str, more: str, text: str) -> None:
    study = load(written(tmp_path, kind, more))
    with pytest.raises(InputError, match=re.escape(text)):
        study_files(study)


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("schema = 1", "schema = 2", "schema"), ('title = "T"\n', "", "title: is missing"),
        ("[[part]]", "[part]", "part: write 1"), ('kind = "sensitivity"', 'kind = "sensitivty"', "nearest: sensitivity"),
        ("top = 3", "topp = 3", "part 1: topp: unknown key"),
        ('net = ["alexnet"]', "net = []", "part 1: net"), ('name = "a"', 'name = "../a"', "part 1: name"),
        ("top = 3", "top =", "TOML"),
    ],
)  # fmt: skip
def test_a_bad_file_is_refused(tmp_path: Path, old: str, new: str, text: str) -> None:
    path = written(tmp_path, "sensitivity")
    body = path.read_text("utf-8")
    assert old in body
    path.write_text(body.replace(old, new), "utf-8")
    with pytest.raises(InputError, match=re.escape(text)):
        load(path)


@pytest.mark.parametrize(
    ("words", "text"),
    [('clok = "600 MHz"', "part 1: to: no argument 'clok'; nearest: clock"),
     ('clock = "600 parsec"', "part 1: to: clock: '600 parsec' is not in Hz"),
     ('batch = "many"', "part 1: to: batch: 'many' is not a whole number"), ('"sm.count" = 4', "in a study under `change`")],
)  # fmt: skip
def test_what_is_no_change_of_an_argument_is_refused_with_its_name(tmp_path: Path, words: str, text: str) -> None:
    path = written(tmp_path, "whatif", f"to = {{ {words} }}\n")
    with pytest.raises(InputError, match=re.escape(text)):
        load(path)


def test_all_problems_are_told_at_once_and_names_differ(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    two = f'{PART}kind = "sensitivity"\n'
    path.write_text(HEAD + two + two + PART.replace('"a"', '"b"') + 'kind = "none"\n', "utf-8")
    with pytest.raises(InputError) as caught:
        load(path)
    assert len(caught.value.problems) == 2


LONGER = [pytest.param(name, marks=pytest.mark.slow) for name in ("bandwidth_or_sms", "k40_to_v100")]


def skeleton(name: str, text: str) -> list[str]:
    """What of a file is the same with other constants: headings and pictures of the report, head and length of a table, and the
    parts of a picture, whose order follows values."""
    if name.endswith(".csv"):
        return [text.partition("\n")[0], str(text.count("\n"))]
    lines = [re.sub(r' (points|y)="[^"]*"', "", line) for line in text.splitlines() if line.startswith(("#", "![", "<svg"))]
    return sorted(lines) if name.endswith(".svg") else lines


@pytest.mark.parametrize("name", ["tegra_lpddr5", *LONGER])
def test_a_shipped_study_gives_the_files_that_lie_beside_it(name: str) -> None:
    """Their numbers are those of the last release."""
    folder = SHIPPED / name
    files = study_files(load(folder / "study.toml"))
    assert {path.name for path in folder.iterdir()} == {*files, "study.toml"}
    for file, text in files.items():
        assert skeleton(file, (folder / file).read_text("utf-8")) == skeleton(file, text), file
