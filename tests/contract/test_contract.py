"""What holds of every answer, whatever it says: of its JSON, text, CSV, page and piece of a notebook. Each check can fail."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from archsim.answers.schemas import SCHEMAS, schema_of
from archsim.render.blocks import Chart, Column, Note, Series, Table, Verdict, words
from archsim.render.html import notebook, page
from archsim.render.markdown import markdown
from archsim.render.text import PIPE, Screen, text_of

from ..chromium import CHROMIUM, Browser
from . import checks
from .cases import ASKED, COMMANDS, LARGE, LISTS, OLD, SAID, Told, printed, record_of, told

FIRST_SCREEN = 24  # lines of an answer, warnings aside, at the width of a terminal
LONGER = {"llm": 31, "whatif": 25, "target": 29, "tune": 32, "cache": 33, "explain": 30, "simulated": 48, "sm": 28, "profile": 37}
WIDTH = 120  # of that terminal
ANSI = re.compile(r"\x1b\[[0-9;]*m")
every_answer = pytest.mark.parametrize("line", [line for _, line in SAID])
every_verdict = pytest.mark.parametrize(("name", "line"), [(name, line) for name, line in SAID if name not in LISTS])
in_a_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the PATH")


def of(line: str) -> Told:
    found = told(line)
    assert found is not None, f"{line} prints without AnswerForm.show"
    return found


@pytest.mark.parametrize(("name", "line"), ASKED)
def test_json_is_as_its_schema_says(name: str, line: str) -> None:
    pytest.importorskip("jsonschema")
    assert checks.against_schema(record_of(name, line), schema_of(name)) == []


def test_every_schema_has_a_command() -> None:
    assert {*COMMANDS} == {*SCHEMAS}
    assert {*COMMANDS} >= OLD


@every_verdict
def test_the_verdict_comes_first_and_all_its_numbers_are_said(name: str, line: str) -> None:
    blocks = of(line).blocks
    for screen in (PIPE, Screen(width=80), Screen(width=40)):
        assert checks.without_its_verdict(text_of(blocks, 0, screen), blocks) == []
    assert checks.without_its_verdict(page(blocks), blocks) == []
    assert checks.without_its_verdict(markdown(blocks), blocks) == []


@every_verdict
def test_the_first_screen_is_short(name: str, line: str) -> None:
    expected = [block for block in of(line).blocks if not (isinstance(block, Note) and block.tone == "warning")]
    shown = text_of(expected, 0, Screen(width=WIDTH)).splitlines()
    assert len(shown) <= LONGER.get(name, FIRST_SCREEN), "\n".join(shown)


@every_answer
@pytest.mark.parametrize("width", [80, 40])
def test_no_line_is_wider_than_the_screen_and_no_word_is_lost(line: str, width: int) -> None:
    for level in (0, 1, 2):
        shown = text_of(of(line).blocks, level, Screen(width=width))
        assert checks.too_wide(shown, width) == []
        assert width == 40 or checks.lost(text_of(of(line).blocks, level), shown) == set()


@every_answer
def test_colours_are_only_where_they_are_wanted_and_change_no_word(line: str) -> None:
    plain, coloured = (text_of(of(line).blocks, 2, Screen(width=100, color=color)) for color in (False, True))
    assert checks.control_signs(plain) == []
    assert ANSI.search(coloured)
    assert ANSI.sub("", coloured) == plain


@every_answer
def test_rows_of_csv_have_the_columns_of_their_head(line: str) -> None:
    found = of(line)
    if not hasattr(found.module, "csv"):
        pytest.skip("has no rows")
    assert checks.ragged(found.module.csv(found.answer)) == []


@every_answer
def test_a_page_is_well_formed_and_stands_alone(line: str) -> None:
    assert checks.ill_formed(page(of(line).blocks)) == []


@every_answer
def test_a_piece_of_a_notebook_is_a_part(line: str) -> None:
    assert checks.not_a_part(notebook(of(line).blocks)) == []


@every_answer
def test_hostile_names_become_neither_tags_nor_signs(line: str) -> None:
    blocks = of(line).blocks
    hostile = checks.spoiled(blocks)
    for screen in (PIPE, Screen(width=80)):
        assert checks.control_signs(text_of(hostile, 2, screen)) == []
    assert "alert" in text_of(hostile, 2)
    assert "<script" not in markdown(hostile)
    assert checks.control_signs(markdown(hostile)) == []
    assert checks.more_tags(page(blocks), page(hostile)) == []
    assert checks.more_tags(notebook(blocks), notebook(hostile)) == []


@every_answer
def test_equal_answers_give_equal_pages(line: str) -> None:
    found = of(line)
    assert page(found.blocks) == page(found.blocks)


@in_a_browser
@pytest.mark.parametrize("line", [LARGE, *(COMMANDS[name][0] for name in COMMANDS if name not in OLD)])
def test_a_page_has_no_fault_in_any_view_and_axe_finds_nothing_serious(line: str, tmp_path: Path, browser: Browser) -> None:
    place = tmp_path / "page.html"
    place.write_text(page(of(line).blocks), "utf-8")
    assert browser.faults_in_views(place.as_uri()) == []
    assert browser.serious() == []
    assert browser.run("document.querySelectorAll('.scroll th:not(:has(button))').length") == 0, "a head that sorts nothing"
    if line == LARGE:
        assert browser.run("document.querySelectorAll('.icicle .cell').length") > 100
        assert browser.run("document.querySelectorAll('input[type=search]').length") == 1


def test_the_forms_of_a_command_are_those_of_its_answer() -> None:
    line = SAID[0][1]
    found = of(line)
    assert json.loads(printed(f"{line} --json")) == json.loads(json.dumps(found.module.record(found.answer)))
    assert printed(f"{line} --csv") == found.module.csv(found.answer)
    assert printed(line) == text_of(found.blocks) + "\n"
    assert printed(f"{line} --all") == text_of(found.blocks, 2) + "\n"


@pytest.mark.parametrize("name", sorted({*COMMANDS} - OLD - LISTS - {"explain", "simulated", "slowest", "target"}))
def test_a_command_writes_the_page_of_its_answer(name: str, tmp_path: Path) -> None:
    printed(f"{COMMANDS[name][0]} --html {tmp_path / 'page.html'}")
    assert (tmp_path / "page.html").read_text("utf-8").startswith("<!DOCTYPE html>")


VERDICT = Verdict(title="a on b", lines=[("12.5 ms", "10 to 15 ms", "")])
PAGE = page([VERDICT])


@pytest.mark.parametrize("faults", [
    lambda: checks.against_schema({"b": 1}, {"type": "object", "properties": {"a": {}}}),
    lambda: checks.against_schema({"a": "1"}, {"type": "object", "properties": {"a": {"type": "number"}}}),
    lambda: checks.without_its_verdict("12.5 ms, 10 ms", [VERDICT]),
    lambda: checks.without_its_verdict("12.5 ms, 10 to 15 ms", [Note(text="first"), VERDICT]),
    lambda: checks.ragged("a,b\n1\n"), lambda: checks.ragged("a,a\n1,2\n"), lambda: checks.ragged("a\n"),
    lambda: checks.ragged("a\n=1+1\n"),
    lambda: checks.too_wide("a" * 41, 40), lambda: [*checks.lost("one, two", "one")], lambda: checks.control_signs("a\x1b[2J"),
    lambda: checks.ill_formed(PAGE.replace("</h1>", "")), lambda: checks.ill_formed(PAGE.replace("<h1>", "<b>")),
    lambda: checks.ill_formed(PAGE.replace("<h1>", '<h1 id="a"><i id="a"></i>')),
    lambda: checks.ill_formed(PAGE.replace("<h1>", '<h1><img src="https://example.org/a.png">')),
    lambda: checks.ill_formed(PAGE.replace("<title>a on b", "<title>")),
    lambda: checks.ill_formed(f"{PAGE}<!-- {'a' * 300_000}"),
    lambda: checks.ill_formed(PAGE.replace("<style>", "<style>@import 'a.css';")),
    lambda: checks.not_a_part(PAGE), lambda: checks.not_a_part("<div></div><div></div"),
    lambda: checks.not_a_part("<div><script></script></div>"), lambda: checks.not_a_part("<div><style>\nbody { }</style></div>"),
    lambda: checks.not_a_part("<div><style>@scope (a) { } body { }</style></div>"),
    lambda: checks.more_tags(PAGE, PAGE.replace("a on b", "<i>a</i>")), lambda: checks.more_tags(PAGE, PAGE + "\x07"),
])  # fmt: skip
def test_each_check_finds_a_fault(faults) -> None:
    assert faults() != []


def test_what_is_spoiled_reaches_every_word() -> None:
    blocks = [VERDICT, Table(title="t", columns=[Column(head="h")], rows=[[words("w", tip="tip")]], notes=["n"]),
              Chart(title="c", series=[Series(name="s", x=[1.0, 2.0], y=[1.0, 2.0], labels=["l", ""], tips=["p", "q"])],
                    guides=[("y", 1.5, "g")])]  # fmt: skip
    text = page(checks.spoiled(blocks))
    for word in ("a on b", "12.5 ms", ">t", ">h", "w", "tip", ">n", ">c", ">l", ">p", "g"):
        assert f"{word}&lt;script&gt;" in text, word
    assert "<script>alert" not in text
