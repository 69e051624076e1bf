"""A changed device bears its changes in the output of every command."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest

SET = ("--net", "alexnet", "--hw", "gtx_1080", "--set", "sm.count=80")
CHANGE = "what if sm.count = 80"
SAID = "with sm.count = 80"
NAME = f"gtx_1080 {SAID}"
CHILD = """
schema = 1
id = "my_card"
name = "A card of mine"
inherits = "gtx_1080"
year = 2020
[clock]
sustained = { value = "1650 MHz", source = "a run", kind = "measured" }
[power]
idle = { value = "38 W", source = "a guess", kind = "assumed", note = "as its parent" }
[sm]
count = { value = 80, source = "a guess", kind = "assumed", note = "a wish" }
"""
COMMANDS = {
    "estimate": (), "explain": (), "sensitivity": ("--keys", "sm.count"), "compare": (),
    "search": ("--vary", "l2.size=1MiB,2MiB", "--minimise", "energy", "--any-die"), "whatif": (),
}  # fmt: skip


@pytest.fixture
def child(tmp_path: Path) -> str:
    place = tmp_path / "child.toml"
    place.write_text(CHILD, "utf-8")
    return str(place)


@pytest.mark.parametrize("name", COMMANDS)
def test_text_names_the_changes(cli: Any, name: str) -> None:
    assert (CHANGE if name == "whatif" else SAID) in cli(name, *SET, *COMMANDS[name]).out


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "explain"])
def test_json_has_the_id_the_name_and_the_changes(cli: Any, name: str) -> None:
    found = cli(name, *SET, *COMMANDS[name], "--json").json
    found = found[0] if name == "compare" else found["after"] if name == "whatif" else found
    assert (found["hardware"], found["hardware_name"], found["changes"]) == ("gtx_1080", NAME, {"sm.count": "80"})


@pytest.mark.parametrize("name", ["estimate", "compare", "sensitivity", "search", "sweep"])
def test_csv_has_the_name(cli: Any, name: str) -> None:
    words = COMMANDS.get(name, ("--vary", "l2.size=1MiB,2MiB"))
    out = cli(name, *SET, *words, *(() if name == "sweep" else ("--csv",))).out
    rows = list(csv.DictReader(io.StringIO(out)))
    assert {row["hardware_name"] for row in rows} == {NAME}


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "explain"])
def test_pages_have_the_name(cli: Any, name: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    cli(name, *SET, *COMMANDS[name], "--html", str(page))
    assert (CHANGE if name == "whatif" else SAID) in page.read_text("utf-8")


@pytest.mark.parametrize("words", [("serve", "--rate", "100/s", "--requests", "500"), ("train", "--devices", "1")])
def test_simulations_have_the_name(cli: Any, words: tuple[str, ...]) -> None:
    assert NAME in cli("simulate", words[0], *SET, *words[1:]).out
    assert cli("simulate", words[0], *SET, *words[1:], "--json").json["hardware_name"] == NAME


@pytest.mark.parametrize("name", COMMANDS)
def test_a_child_is_told_from_its_parent(cli: Any, name: str, child: str) -> None:
    words = (*COMMANDS[name], *(("--scale", "l2.size=2") if name == "whatif" else ()))
    out = cli(name, "--net", "alexnet", "--hw", child, *words).out
    assert NAME in out
    assert "my_card" in out or "A card of mine" in out


def test_a_comparison_tells_apart_what_bears_one_id(cli: Any, child: str) -> None:
    Path(child).write_text(CHILD.replace('id = "my_card"', 'id = "gtx_1080"'), "utf-8")
    rows = cli("compare", "--net", "alexnet", "--hw", f"gtx_1080,{child}", "--json").json
    assert {row["hardware_name"]: row["price_usd"] for row in rows} == {"gtx_1080": 599.0, NAME: None}


def test_a_changed_device_has_no_published_measurements(cli: Any) -> None:
    same = cli("estimate", "--net", "alexnet", "--hw", "gtx_1080", "--set", "sm.count=20").out
    assert "DLInfBench" in same
    assert "nobody has published" in cli("estimate", *SET).out


def test_a_die_that_no_mask_can_make_is_marked(cli: Any, child: str) -> None:
    said = "no mask can make it as one die: about 1001 mm2, and one exposure covers 858 mm2"
    for words in (SET, ("--net", "alexnet", "--hw", child)):  # a child's area is not its parent's
        assert f"warning: {said}" in cli("estimate", *words).out
    assert "no mask" not in cli("estimate", "--net", "alexnet", "--hw", "b200_sxm").out
    assert "no mask can make it as one die" in cli("whatif", *SET, "--area").out


def test_a_sweep_has_the_area_and_whether_masks_can_make_it(cli: Any) -> None:
    rows = cli("sweep", *SET[:4], "--vary", "sm.count=20,80").rows
    assert [(round(float(row["area_mm2"])), row["one_die"]) for row in rows] == [(314, "1"), (1001, "0")]
    rows = cli("sweep", "--net", "alexnet", "--hw", "i7_6700k", "--vary", "core.count=2,4").rows
    assert {(row["area_mm2"], row["one_die"]) for row in rows} == {("", "")}
