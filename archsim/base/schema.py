"""The shape of a data file's words, checked by pydantic: the base that every file form shares."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from archsim.base.errors import InputError, near_words, refuse
from archsim.base.toml import parsed

LONGEST_WORD = 2000  # characters

Word = Annotated[str, Field(min_length=1, max_length=LONGEST_WORD)]


class Form(BaseModel):
    """No unknown keys, no coercion, no NaN or infinity."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


F = TypeVar("F", bound=Form)


def problems_of(form: type[F], words: dict[str, Any], prefix: str, also: Iterable[str] = ()) -> tuple[F | None, list[str]]:
    """The checked form, or None and one sentence for each problem, each beginning with `prefix` and the key.

    also: keys that are read elsewhere
    """
    try:
        return form.model_validate(words), []
    except ValidationError as error:
        return None, [_sentence(form, item, prefix, also) for item in _first_per_key(error)]


def _first_per_key(error: ValidationError) -> list[Any]:
    """One error for each key: a union (`str | int | float`) would otherwise report every member.

    That a number is not finite says more than that it is no text, so it goes first.
    """
    firsts: dict[str, Any] = {}
    for item in sorted(error.errors(include_url=False), key=lambda item: item["type"] != "finite_number"):
        firsts.setdefault(str(item["loc"][0]), item)
    return list(firsts.values())


def _sentence(form: type[Form], item: Any, prefix: str, also: Iterable[str]) -> str:
    key = str(item["loc"][0])
    if item["type"] == "extra_forbidden":
        known = [*(field.alias or name for name, field in form.model_fields.items()), *also]
        return f"{prefix}{key}: unknown key; nearest: {near_words(key, known)}"
    if item["type"] == "missing":
        return f"{prefix}{key}: is missing"
    if item["type"] == "finite_number":
        return f"{prefix}{key}: must be a finite number"
    if item["type"] == "value_error":  # a check of our own says it all
        return f"{prefix}{key}: {item['ctx']['error']}"
    return f"{prefix}{key}: {item['msg'][:1].lower()}{item['msg'][1:]}, is {item['input']!r}"


def rows_of(form: type[F], name: str, text: str, path: str) -> tuple[F, ...]:
    """The tables `[[name]]` of a text that has nothing else. Raises InputError with all problems; it calls the text `path`."""
    document = parsed(text, path, "sources")
    rows = document.pop(name, [])
    problems = [f"{key}: unknown key; known: {name}" for key in document]
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError(path, [*problems, f"{name}: must be tables `[[{name}]]`"])
    read = [problems_of(form, row, f"{name} {i}: ") for i, row in enumerate(rows, 1)]
    problems += [problem for _, wrong in read for problem in wrong]
    refuse(path, problems)
    return tuple([found for found, _ in read if found is not None])
