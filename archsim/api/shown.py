"""The forms of every answer. What draws and writes is imported when somebody looks."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from archsim.base.answer import Presentation

Words = Callable[[Any], tuple[Any, ...]]  # what a function is called with, from an answer


def presentation_of(answer: str) -> Presentation:
    """The forms of the class of that name."""
    from archsim.answers import MODULES, notebook_of, page_of, record_of

    return Presentation(table=notebook_of, record=record_of, page=page_of) if answer in MODULES else FORMS[answer]


def drawn(place: str, of: Words = lambda answer: (answer,)) -> Callable[[Any], Any]:
    """The function `module.name` of `archsim.report`, imported on use; a test holds that there is one at each place."""

    def form(answer: Any) -> Any:
        module, _, name = place.partition(".")
        return getattr(import_module(f"archsim.report.{module}"), name)(*of(answer))

    form.__doc__ = place
    return form


FORMS = {
    "Comparison": Presentation(table=drawn("notebook.comparison_table"),
                               record=drawn("compare_data.comparison_record", lambda c: ([c],)),
                               page=drawn("compare_page.comparisons_page", lambda c: ([c],))),
    "Held": Presentation(table=drawn("notebook.comparison_table", lambda h: (h.comparison,)),
                         record=drawn("compare_within.held_record")),
    "CurveComparison": Presentation(table=drawn("notebook.curves_table"),
                                    record=drawn("compare_data.curves_record", lambda c: (c, c.best[0].workload)),
                                    page=drawn("compare_page.curve_pages", lambda c: ([c],))),
}  # fmt: skip
