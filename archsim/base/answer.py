"""What the answers of the package have in common: they show themselves in a notebook, and become plain values or a page.

How is decided above the models: the API says which `Presentation` a class has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class Presentation:
    """Three forms of an answer: a table for a notebook, the values of `--json`, and a whole page (None where none exists)."""

    table: Callable[[Any], str]
    record: Callable[[Any], Any]
    page: Callable[[Any], str] | None = None


class Answer:
    """Base of what the functions of the API return."""

    __slots__ = ()
    presented_by: ClassVar[Callable[[str], Presentation] | None] = None  # class name -> its forms; the API sets it

    def _repr_html_(self) -> str | None:
        of = Answer.presented_by
        return None if of is None else of(type(self).__name__).table(self)

    def to_dict(self) -> Any:
        """The answer as plain values, as `--json` prints them."""
        return self._forms().record(self)

    def to_page(self) -> str:
        """The answer as a self-contained HTML page, as `--html` writes it."""
        page = self._forms().page
        if page is None:
            raise TypeError(f"there is no page of a {type(self).__name__}; its table shows in a notebook")
        return page(self)

    def _forms(self) -> Presentation:
        if Answer.presented_by is None:
            raise TypeError("import archsim.api, which knows the forms of answers")
        return Answer.presented_by(type(self).__name__)
