"""A row of ARGUMENTS holds what it promises: each face that it names takes a good value and refuses a bad one by its name."""

from __future__ import annotations

import inspect
import subprocess
import sys

import click
import pytest

import archsim
from archsim.api.arguments import arguments_of
from archsim.base.arguments import ARGUMENTS, KINDS, SERVED, called, changes_of, rows_of
from archsim.base.errors import ArchsimError
from archsim.cli.main import group
from archsim.estimation.request import make_request
from archsim.estimation.result import Estimate
from archsim.generation.plan import serving_plan
from archsim.stack.parts import LEVELS
from archsim.study.axis import axis_of
from archsim.study.file import load
from archsim.study.knob import known
from archsim.study.names import names_of
from archsim.study.tune import axes_of
from archsim.ui.estimates import requested
from archsim.ui.form import form
from archsim.ui.state import NETWORKS, read_state
from tests.each import each

BY_KIND = {  # a good text of a kind, and a bad one
    "name": ("alexnet", ""), "file": ("mine.csv", ""), "constants": ("mine.toml", ""), "list": ("host", ""),
    "share": ("50%", "half"), "whole": ("4", "many"), "quantity": ("{}", "5 parsec"), "flag": ("yes", "perhaps"),
    "pairs": ("a=1USD", "a"), "values": ("sm.count=20", "sm.count"), "factors": ("sm.count=2", "sm.count=fast"),
    "sizes": ("height=224", "height=tall"),
}  # fmt: skip
OF_ONE = {"hw": "gtx_1080", "precision": "fp16", "task": "training_step", "optimiser": "adam", "stack": "caffe-cudnn5.1",
          "fusion": "none", "boundary": "wall", "clock": "1GHz", "memory_clock": "5GHz", "power_limit": "150W",
          "energy_budget": "1J", "fidelity": "roofline", "traffic": "closed", "devices": "1", "streams": "1",
          "pue": "1.3"}  # fmt: skip
BESIDE = {"optimiser": "&task=training_step", "seq_len": "&net=bert_base", "bind": None, "threads": "&hw=i7_6700k"}  # of a page
ROWS = {name: row for name, row in ARGUMENTS.items() if row.group}
PLACES = {"estimate": ("run", "budget", "wall"), "compare": ("buyer",)}  # command -> groups that are seen there


def good(name):
    return OF_ONE.get(name, BY_KIND[ROWS[name].kind][0])


def bad(name):
    return BY_KIND[ROWS[name].kind][1]


def rows_with(what):
    return [name for name, row in ROWS.items() if getattr(row, what)]


def where(name):
    if name == "batch":  # of which `estimate` takes several
        return "explain"
    return next(command for command, groups in PLACES.items() if ROWS[name].group in ("place", *groups))


def parsed(command, *words):
    """What the options of a command become, before it runs."""
    found = group.get_command(click.Context(group), command)
    return found.make_context(command, [*words]).params


def test_a_network_and_a_device_must_be_named():
    for words in ((), ("--net", "alexnet"), ("--hw", "gtx_1080")):
        with pytest.raises(click.MissingParameter):
            parsed("estimate", *words)


def test_a_kind_has_its_values_here():
    assert set(BY_KIND) == set(KINDS)


def test_the_rows_are_the_arguments_of_a_request_and_of_a_plan_with_their_defaults():
    parameters = dict(inspect.signature(make_request).parameters)
    del parameters["composed"]  # a stack that no user has
    rows = {name: row for name, row in ARGUMENTS.items() if row.group in ("place", "run", "wall", "")}
    assert set(parameters) == set(rows)
    assert {n: p.default for n, p in parameters.items() if p.default is not p.empty} == {n: rows[n].default for n in parameters
            if parameters[n].default is not inspect.Parameter.empty}  # fmt: skip
    assert set(SERVED) | {"net", "hw"} == set(inspect.signature(serving_plan).parameters)


def test_words_of_one_row_mean_one_thing():
    for rows in (ARGUMENTS.values(), SERVED.values()):
        words = [word for row in rows for word in (row.called, *row.spelt, *row.aliases)]
        assert len(words) == len(set(words))


def test_lists_that_are_closed_are_those_of_the_model():
    assert ARGUMENTS["fusion"].choices == LEVELS
    assert all(names_of(row.names) for row in (*ARGUMENTS.values(), *SERVED.values()) if row.names)
    assert all(hasattr(Estimate, row.estimated) or row.estimated in Estimate.__dataclass_fields__ for row in ROWS.values()
               if row.estimated)  # fmt: skip


@each("name", [name for name, row in ROWS.items() if row.group != "place" and name != "batch"])  # of which commands take several
def test_a_command_takes_it_and_says_what_it_is(name):
    row, command = ROWS[name], where(name)
    one = ("--hw", "gtx_1080", "--net", "alexnet")
    value = [row.option] if row.kind == "flag" else [row.option, good(name)]
    assert parsed(command, *one, *value)[name] == row.read(good(name) if row.kind != "pairs" else [good(name)])
    if row.kind != "flag":
        with pytest.raises((click.BadParameter, ArchsimError)) as caught:
            parsed(command, *one, row.option, bad(name))
        wrong = caught.value
        assert row.option in (wrong.format_message() if isinstance(wrong, click.BadParameter) else str(wrong))
    known = group.get_command(click.Context(group), command)
    listed = {record[0].split()[0].strip(","): record[1] for param in known.params if isinstance(param, click.Option)
              and (record := param.get_help_record(click.Context(known)))}  # fmt: skip
    assert listed[row.option].startswith(row.doc.partition("{names}")[0])


@each("name", ROWS)
def test_a_function_takes_it_and_names_it_where_it_is_wrong(name):
    row = ROWS[name]
    function = archsim.compare if row.group == "buyer" else archsim.estimate
    assert row.called in inspect.signature(function).parameters
    if row.kind != "constants":
        assert arguments_of("f", {row.called: good(name)}, [row]) == {name: row.read(good(name))}
    with pytest.raises(ArchsimError, match=rf"^{row.called}: "):
        arguments_of("f", {row.called: bad(name)}, [row])


@each("name", [name for name in rows_with("varies") if ROWS[name].group != "place"])
def test_a_study_varies_it(name):
    kind = ROWS[name].devices[0]
    assert name in known(kind)
    assert axis_of(f"{name}={good(name)}", kind).knob == name
    with pytest.raises(ArchsimError, match=name if ROWS[name].numeric else "unknown|ambiguous"):
        axis_of(f"{name}={'many' if ROWS[name].numeric else 'nothing_of_that_name'}", kind)


@each("name", rows_with("tuned"))
def test_tune_tries_it(name):
    spec = make_request("alexnet", "i7_6700k" if name == "threads" else "gtx_1080").spec
    assert name in {axis.knob for axis in axes_of(spec, [f"{name}={good(name)}"], ())}
    with pytest.raises(ArchsimError, match=name):
        axes_of(spec, [f"{name}=many"], ())


@each("name", rows_with("changed"))
def test_a_what_if_changes_it(name, tmp_path):
    assert parsed("whatif", "--net", "alexnet", "--hw", "gtx_1080", "--to", f"{name}={good(name)}")
    assert changes_of({name: good(name)}) == {name: ROWS[name].read(good(name))}
    with pytest.raises(ValueError, match=rf"{name}: |KEY=VALUE"):
        changes_of([f"{name}={bad(name)}"])


@each("name", [row.name for row in rows_of("run", without=("devices", "calibration"))])
def test_a_study_file_takes_it(name, tmp_path):
    row, place = ROWS[name], tmp_path / "s.toml"

    def study(value):
        place.write_text(f'schema = 1\ntitle = "T"\nquestion = "Q"\n[[part]]\nkind = "sensitivity"\nname = "a"\ntitle = "A"\n'
                         f'net = ["alexnet"]\nhw = ["gtx_1080"]\n{row.called} = {value}\n', "utf-8")  # fmt: skip
        return load(place).parts[0].arguments

    key, _, value = good(name).partition("=")
    assert study(f'{{ "{key}" = "{value}" }}' if value else f'"{good(name)}"')[name] == row.read(good(name))
    with pytest.raises(ArchsimError, match=f"part 1: {row.called}: "):
        study(f'"{bad(name)}"')


@each("name", [name for name, row in ROWS.items() if row.page])
def test_the_page_has_it(name):
    query = BESIDE.get(name, "")
    if query is None:
        return
    query = query if "net=" in query else f"{query}&net=alexnet"
    state = read_state(f"{query if 'hw=' in query else f'{query}&hw=gtx_1080'}&{name}={good(name)}".lstrip("&"))
    assert f'name="{name}"' in form(state)
    assert (name in NETWORKS.tuned) == (ROWS[name].page == "slider")
    assert requested(state).asked.get(name, ROWS[name].default) == ROWS[name].read(good(name))
    if ROWS[name].numeric:
        wrong = read_state(f"net=alexnet&hw=gtx_1080&{name}={bad(name)}")
        with pytest.raises(ArchsimError, match=f"^{name}: "):
            requested(wrong)


def test_a_name_elsewhere_leads_to_the_one_here():
    for row in ROWS.values():
        for word in (*row.spelt, row.called):
            assert called(word, ROWS.values()) is row
        for alias in row.aliases:
            with pytest.raises(ValueError, match=f"no argument '{alias}'; nearest: {row.called}"):
                called(alias, ROWS.values())


NEW = """
from archsim.base.arguments import ARGUMENTS, Argument
ARGUMENTS["humidity"] = Argument(name="humidity", kind="quantity", unit="W", title="damp air", varies=True, tuned=True,
                                 changed=True, page="field", doc="How damp the air is.")
import inspect, click, archsim
from archsim.cli.main import group
from archsim.study import knob, tune
from archsim.ui.state import NETWORKS
from click.shell_completion import BashComplete
command = group.get_command(click.Context(group), "estimate")
assert "How damp the air is." in command.get_help(click.Context(command)), "help"
assert command.make_context("estimate", "--net alexnet --hw gtx_1080 --humidity 5W".split()).params["humidity"] == 5.0, "option"
assert "humidity" in inspect.signature(archsim.estimate).parameters, "function"
assert "humidity" in knob.known("gpu") and knob.meaning("gpu", "humidity").unit == "W", "knob"
assert "humidity" in tune.SETTINGS, "tune"
assert "humidity" in NETWORKS.choices, "page"
shell = BashComplete(group, {}, "archsim", "_ARCHSIM_COMPLETE")
for line in (["sweep", "--vary"], ["tune", "--vary"], ["whatif", "--to"]):
    assert [item.value for item in shell.get_completions(line, "humid")] == ["humidity="], line
"""


def test_a_row_that_is_added_is_found_on_every_face():
    subprocess.run([sys.executable, "-c", NEW], check=True)
