"""Forms: what they take, and the sentences made of what pydantic finds."""

from __future__ import annotations

import datetime
import subprocess
import sys
import tomllib
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from archsim.cost.constants import CalibrationForm
from archsim.files import data_folder
from archsim.form import Form, Limits, Misshapen, Word, problems_of, read, values_of, with_values
from archsim.stack import catalog as stacks
from archsim.stack.form import StackForm


class Sample(Form):
    """A form with one key of each kind."""

    name: Word
    count: int = 1
    value: str | int | float = 1
    share: float = 0.5


def sentences(**words: object) -> list[str]:
    return problems_of(Sample, dict(words), "sample.")[1]


def test_a_good_form_has_no_problems() -> None:
    form, problems = problems_of(Sample, {"name": "x", "value": 2.5}, "")
    assert problems == []
    assert form is not None
    assert (form.name, form.value) == ("x", 2.5)


def test_every_problem_is_found_at_once() -> None:
    found = sentences(count="1", shre=1, share=float("nan"))
    assert found == [
        "sample.share: must be a finite number",
        "sample.name: is missing",
        "sample.count: input should be a valid integer, is '1'",
        "sample.shre: unknown key; nearest: share",
    ]


def test_nothing_is_coerced() -> None:
    assert sentences(name=5) == ["sample.name: input should be a valid string, is 5"]
    assert sentences(name="x", count=1.0) != []
    assert sentences(name="x", count=True) != []
    assert sentences(name="x", value=True) != []


def test_a_union_reports_one_problem_and_the_telling_one() -> None:
    assert sentences(name="x", value=float("nan")) == ["sample.value: must be a finite number"]
    assert len(sentences(name="x", value=[1])) == 1


def test_an_unknown_key_without_a_near_one_lists_all() -> None:
    assert sentences(name="x", zzz=1) == ["sample.zzz: unknown key; nearest: name, count, value, share"]


class Row(Form):
    """A form inside another one."""

    size: Annotated[int, Limits(ge=1, lt=100)]
    share: Annotated[float, Limits(gt=0, le=1)] | None = None


class Whole(Form):
    """A form with one of everything that forms declare."""

    schema_: Literal[1]
    id: Annotated[str, Limits(pattern=r"^[a-z]{2,4}$")]
    mixed: str | int | float = 0
    flag: bool = False
    rows: Annotated[list[Row], Limits(min_length=1, max_length=2)] = []
    table: dict[Word, float] = {}
    of_two: Literal["a", "b"] | None = None


def by_pydantic(words: object) -> object:
    """What pydantic makes of words, with alias and defaults as attributes; None where it refuses them."""
    try:
        return Whole._model().model_validate(words).model_dump()
    except ValidationError:
        return None


def by_form(words: object) -> object:
    try:
        form = read(Whole, words)
    except Misshapen:
        return None
    return {**values_of(form), "rows": [values_of(row) for row in form.rows]}


ODD = st.sampled_from([
    0, 1, -1, 2, 99, 100, 1.0, 0.5, 1e-300, 1e400, float("nan"), True, False, None, "", "a", "b", "ab", "abcd", "ab\n", "ABC",
    "x" * 2001, [], [1], [{"size": 1}], [{"size": 1}] * 3, [{"size": 0}], [{"size": 1, "share": 1}], [{"size": 1, "share": 1.5}],
    [{"more": 1}], {}, {"a": 1}, {"a": 1.5}, {"": 1}, {"a": "b"}, {"a": True}, (1, 2), 10**400, datetime.date(2020, 1, 1),
])  # fmt: skip


@given(st.dictionaries(st.sampled_from(["schema", "id", "mixed", "flag", "rows", "table", "of_two", "schema_", "other"]), ODD))
def test_a_form_takes_what_pydantic_takes_and_nothing_else(words: dict[str, object]) -> None:
    words = {"schema": 1, "id": "ab", **words}
    found, meant = by_form(words), by_pydantic(words)
    assert found == meant
    assert repr(found) == repr(meant)  # 1 is no 1.0, and no True


@pytest.mark.parametrize("form", [StackForm, CalibrationForm])
def test_shipped_files_read_as_pydantic_reads_them(form: type[Form]) -> None:
    places = ([data_folder("traces/stacks").joinpath(f"{name}.toml") for name in stacks.names()] if form is StackForm
              else [data_folder("reports/calibration").joinpath("default.toml")])  # fmt: skip
    for place in places:
        words = {"attention": {}, **stacks._merged(place)} if form is StackForm else tomllib.loads(place.read_text("utf-8"))
        assert repr(plain(read(form, words))) == repr(form._model().model_validate(words).model_dump()), place


def plain(value: object) -> object:
    """Forms inside values as dictionaries."""
    if isinstance(value, Form):
        return {name: plain(inner) for name, inner in values_of(value).items()}
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, list) else value


def test_a_form_cannot_be_changed() -> None:
    form = read(Sample, {"name": "x"})
    with pytest.raises(AttributeError, match="Sample"):
        form.name = "y"
    assert (with_values(form, name="y").name, form.name) == ("y", "x")


def test_a_cold_estimate_needs_no_pydantic() -> None:
    heavy = "pydantic networkx simpy plotly rich importlib.metadata"
    code = ("import sys; sys.argv = ['archsim', 'estimate', '--net', 'alexnet', '--hw', 'tegra_x1']\n"
            "from archsim.cli.main import main\ntry: main()\nexcept SystemExit: pass\n"
            f"print([name for name in {heavy.split()!r} if name in sys.modules], file=sys.stderr)")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"
