"""What the answers of the package have in common: they show themselves in a notebook, and become plain values or a page.

How is decided above the models: the API says what makes these forms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class Presentation:
    """Forms of an answer: what a notebook shows, the values of `--json`, a whole page, and its charts by title."""

    notebook: Callable[[Any], str]
    record: Callable[[Any], Any]
    page: Callable[[Any], str]
    figures: Callable[[Any], dict[str, Any]]


class Answer:
    """Base of what the functions of the API return."""

    __slots__ = ()
    forms: ClassVar[Presentation | None] = None  # the API sets it

    def _repr_html_(self) -> str | None:
        return None if Answer.forms is None else Answer.forms.notebook(self)

    def to_dict(self) -> Any:
        """The answer as plain values, as `--json` prints them."""
        return self._forms().record(self)

    def to_page(self) -> str:
        """The answer as a self-contained HTML page, as `--html` writes it."""
        return self._forms().page(self)

    def to_figures(self) -> dict[str, Any]:
        """Its charts as figures of plotly, by title."""
        return self._forms().figures(self)

    def _forms(self) -> Presentation:
        if Answer.forms is None:
            raise TypeError("import archsim.api, which knows the forms of answers")
        return Answer.forms
