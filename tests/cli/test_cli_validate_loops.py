"""`archsim validate --fidelity cycle` on measured loops of a core."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli, Outcome
from tests.core_loops import LOOP
from tests.each import each

ZEN5 = {"machine": {"cpu": {"vendor_id": "AuthenticAMD", "cpu family": "26", "model": "2"}, "flags": ["avx512f"]}}
GROUPED = {**LOOP, "group": "chains", "isa": "avx2"}
UNMEASURED = {**LOOP, "name": "other", "group": "others", "measured": None}
TWICE = {**LOOP, "name": "twice", "group": "others", "measured": {"cycles_per_iteration": 2.0, "clock_ghz": [4.0, 4.2]}}


def written(folder: Path, *loops: dict[str, Any], **more: Any) -> str:
    path = folder / "loops.json"
    path.write_text(json.dumps({"loops": loops, **more}), "utf-8")
    return str(path)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return written(tmp_path, GROUPED, UNMEASURED, TWICE, meta=ZEN5)


def validate(cli: Cli, path: str, *more: str) -> Outcome:
    return cli("validate", "--fidelity", "cycle", "--measurements", path, *more)


def test_loops_are_scored_by_group_on_the_core_that_was_measured(cli: Cli, path: str) -> None:
    found = validate(cli, path, "--json").json
    assert {(group["by"]["group"], group["n"]) for group in found["groups"]} == {("chains", 1), ("others", 1)}
    rows = {row["label"]: row for row in found["rows"]}
    assert {row["hardware"] for row in rows.values()} == {"epyc_9655"}
    assert rows["chain"]["predicted"] == pytest.approx(4.0)
    assert rows["chain"]["error"] == pytest.approx(4.0 / 4.1 - 1.0)
    assert rows["twice"]["error"] == pytest.approx(1.0)
    assert rows["chain"]["isa"] == "avx2"
    assert found["overall"][0]["median_ape"] == pytest.approx((1.0 + 0.1 / 4.1) / 2)
    assert [(skip["row"], skip["reason"]) for skip in found["skipped"]] == [(2, "nobody has measured the loop")]


def test_the_text_names_the_loops_that_are_furthest_off(cli: Cli, path: str) -> None:
    text = validate(cli, path).out
    assert text.startswith("2 measured values beside their predictions · ")
    assert "cycle model" in text.splitlines()[0]
    assert text.index("Furthest of 1 that are more than 25 % off") < text.index("  twice ") < text.index("  chain ")
    assert "100.0 % too high" in text


def test_a_clock_comes_from_beside_the_measurement(tmp_path: Path) -> None:
    from archsim.validation.loops import loop_cases

    cases, _ = loop_cases(written(tmp_path, GROUPED, TWICE, meta=ZEN5))
    assert [case.clock for case in cases] == [None, pytest.approx(4.1e9)]


@each(("meta", "hw", "said"), [
    (ZEN5, "i7_6700k", "measured on zen5"), (ZEN5, "gtx_1080", "is a GPU"), (ZEN5, "epyc_9655,i7_6700k", "name one"),
    ({}, "", "--hw names it"), ({"machine": {"cpu": {"vendor_id": "Me"}}}, "", "--hw names it"), ("x", "", "--hw names it"),
])  # fmt: skip
def test_a_device_that_was_not_measured_is_refused(cli: Cli, tmp_path: Path, meta: Any, hw: str, said: str) -> None:
    found = validate(cli, written(tmp_path, GROUPED, meta=meta), *(("--hw", hw) if hw else ()))
    assert found.code in (2, 65)
    assert said in found.err


def test_a_file_that_names_no_processor_takes_hw(cli: Cli, tmp_path: Path) -> None:
    found = validate(cli, written(tmp_path, GROUPED), "--hw", "i7_6700k", "--json").json
    assert [row["hardware"] for row in found["rows"]] == ["i7_6700k"]


@each(("change", "said"), [
    ({"measured": {"cycles_per_iteration": -1.0}}, "no number of"),
    ({"measured": {"cycles_per_iteration": "four"}}, "loops[0]"), ({"measured": {"cycles_per_iteration": 1e999}}, "no number of"),
    ({"ops": [{**LOOP["ops"][0], "kind": "fmma"}]}, "kind 'fmma'"), ({"streams": 3}, "loops[0]"), ({"measured": 4}, "loops[0]"),
])  # fmt: skip
def test_a_malformed_loop_is_one_error(cli: Cli, tmp_path: Path, change: dict[str, Any], said: str) -> None:
    found = validate(cli, written(tmp_path, {**GROUPED, **change}, meta=ZEN5))
    assert found.code == 65, found.err
    assert said in found.err
    assert "Traceback" not in found.err
