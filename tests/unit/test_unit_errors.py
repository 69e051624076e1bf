"""What users read of errors: those that are meant for them, and the sentences made of what pydantic finds."""

from __future__ import annotations

import pytest

from archsim.base.errors import EXIT, ArchsimError, InputError, MissingExtra, MissingFile, UnknownName, Unsupported, nearest
from archsim.base.schema import Form, Word, problems_of


def test_exit_codes() -> None:
    assert (EXIT["ok"], EXIT["bound missed"], EXIT["usage"], EXIT["bad input"], EXIT["missing file"]) == (0, 1, 2, 65, 66)
    assert (EXIT["missing extra"], EXIT["defect"], EXIT["interrupted"]) == (69, 70, 130)


@pytest.mark.parametrize(
    ("error", "code"),
    [(InputError("f", "x"), 65), (MissingFile("f"), 66), (MissingExtra("fit", "calibrate"), 69), (Unsupported("x"), 2),
     (UnknownName("device", "x", []), 2)],
)  # fmt: skip
def test_each_error_knows_its_code(error: ArchsimError, code: int) -> None:
    assert error.exit_code == code


def test_one_problem_is_one_line() -> None:
    assert str(InputError("spec.toml", "sm.count: is missing")) == "spec.toml: sm.count: is missing"


def test_several_problems_are_listed() -> None:
    assert str(InputError("spec.toml", ["a: x", "b: y"])).splitlines() == ["spec.toml: 2 problems", "  a: x", "  b: y"]


def test_thousands_of_problems_are_cut_but_counted_and_kept() -> None:
    error = InputError("spec.toml", [f"k{i}: unknown key" for i in range(20_000)])
    lines = str(error).splitlines()
    assert lines[0] == "spec.toml: 20000 problems"
    assert lines[-1] == f"  and {20_000 - InputError.most_shown} more"
    assert len(error.problems) == 20_000


def test_nearest_names_come_best_first_and_only_if_near() -> None:
    assert nearest("gtx1080", ["gtx_1080", "gtx_1080_ti", "tesla_k40"]) == ["gtx_1080", "gtx_1080_ti"]
    assert nearest("zzz", ["gtx_1080"]) == []


def test_an_unknown_name_offers_and_hints() -> None:
    assert str(UnknownName("device", "tegra_x", ["tegra_x1"], hint="a path works too")) == (
        "unknown device 'tegra_x'; nearest: tegra_x1; a path works too"
    )


def test_a_missing_extra_says_how_to_install_it() -> None:
    assert 'pip install "archsim[calibrate]"' in str(MissingExtra("fit", "calibrate"))


# ------------------------------------------------------------------------------------------------------------------- forms


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
