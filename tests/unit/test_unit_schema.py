"""The sentences made of what pydantic finds."""

from __future__ import annotations

from archsim.base.schema import Form, Word, problems_of


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
