"""One word for one thing in all commands, and the right word for those who use another."""

from __future__ import annotations

import csv
from collections.abc import Iterator

import click
import pytest

from archsim.cli.main import group
from archsim.cli.vocabulary import ELSEWHERE
from tests.each import each

# option -> the commands in which it means something of its own
ONE = ("--net", "alexnet", "--hw", "gtx_1080")
OWN = {"--gpu": {"detect"}, "--device": {"measure"}, "--output": {"llm", "simulate serve"}}


def commands(parent: click.Group = group, prefix: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(parent)
    for name in parent.list_commands(context):
        found = parent.get_command(context, name)
        assert found is not None
        yield f"{prefix}{name}", found
        if isinstance(found, click.Group):
            yield from commands(found, f"{prefix}{name} ")


EVERY = dict(commands())
WORDS = {name: {option: p for p in command.params for option in p.opts} for name, command in EVERY.items()}


@each("name", WORDS)
def test_no_command_has_a_word_of_its_own_for_what_another_calls_otherwise(name):
    assert {word for word in WORDS[name] if word in ELSEWHERE} <= {word for word, where in OWN.items() if name in where}


@pytest.mark.parametrize("word", ["--net", "--stack", "--precision", "--clock", "--html", "--measurements", "--fidelity"])
def test_a_word_has_one_argument_name_in_all_commands(word):
    found = {words[word].name for words in WORDS.values() if word in words}
    assert len(found) == 1, found


@each("name", WORDS)
def test_json_csv_and_html_mean_the_same_everywhere(name):
    words = WORDS[name]
    for flag, argument in (("--json", "as_json"), ("--csv", "as_csv")):
        assert flag not in words or (words[flag].is_flag and words[flag].name == argument)
    assert "--html" not in words or words["--html"].metavar == "FILE"


CSV = {
    ("whatif", *ONE, "--set", "sm.count=40"): ("changes", "after.time_s"),
    ("explain", *ONE): ("layer", "time_s"),
    ("simulate", "train", "--net", "resnet_18", "--hw", "gtx_1080", "--devices", "1,2"): ("devices", "step_s"),
    ("simulate", "allreduce", "--devices", "2", "--bytes", "1MB"): ("devices", "time_s"),
    ("cache", "--hw", "gtx_1080", "--net", "resnet_20", "--layer", "conv1", "--no-curve"): ("name", "miss_rate"),
    ("list", "fidelities"): ("fidelity", "meaning"),
    ("sweep", *ONE, "--vary", "sm.count=8:24:8"): ("point", "latency_s"),
}


@pytest.mark.parametrize("words", CSV)
def test_rows_for_a_spreadsheet(cli, words):
    rows = list(csv.DictReader(cli(*words, "--csv").out.splitlines()))
    assert rows
    assert set(CSV[words]) <= set(rows[0])
    assert all(row[CSV[words][-1]] for row in rows)


@pytest.mark.parametrize("words", [words for words in CSV if words[0] != "list"])
def test_two_forms_are_refused(cli, words):
    found = cli(*words, "--csv", "--json")
    assert (found.code, found.out) == (2, "")
    assert "choose one" in found.err


def test_shares_are_written_in_per_cent(cli):
    words = ("sensitivity", *ONE, "--keys", "sm.count", "--json")
    assert cli(*words, "--step", "2%", "--span", "50 %").out == cli(*words, "--step", "0.02", "--span", "0.5").out
    for value in ("nan", "30%", "-1%", "5W"):
        assert cli(*words, "--step", value).code == 2
