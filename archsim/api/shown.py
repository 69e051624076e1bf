"""The forms of every answer. What draws and writes is imported when somebody looks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from archsim.base.answer import Presentation

if TYPE_CHECKING:
    from archsim.api.sweep import Sweep
    from archsim.estimation.power_estimate import PowerEstimate
    from archsim.generation.estimate import GenerationEstimate
    from archsim.study.comparison import Comparison, CurveComparison
    from archsim.study.tune import Tuning
    from archsim.study.whatif import Change


def presentation_of(answer: str) -> Presentation:
    """The forms of the class of that name."""
    from archsim.answers import MODULES, notebook_of, page_of, record_of

    return Presentation(table=notebook_of, record=record_of, page=page_of) if answer in MODULES else FORMS[answer]


def _comparison_table(c: Comparison) -> str:
    from archsim.report.notebook import comparison_table

    return comparison_table(c)


def _comparison_record(c: Comparison) -> Any:
    from archsim.report.compare_data import comparison_record

    return comparison_record([c])


def _comparison_page(c: Comparison) -> str:
    from archsim.report.compare_page import comparisons_page

    return comparisons_page([c])


def _curves_table(c: CurveComparison) -> str:
    from archsim.report.notebook import curves_table

    return curves_table(c)


def _curves_record(c: CurveComparison) -> Any:
    from archsim.report.compare_data import curves_record

    return curves_record(c, c.best[0].workload)


def _curves_page(c: CurveComparison) -> str:
    from archsim.report.compare_page import curve_pages

    return curve_pages([c])


def _change_table(c: Change) -> str:
    from archsim.report.notebook import change_table

    return change_table(c)


def _change_record(c: Change) -> Any:
    import json

    from archsim.report.whatif import whatif_record

    return json.loads(json.dumps(whatif_record(c), allow_nan=False))


def _change_page(c: Change) -> str:
    from archsim.report.whatif_page import whatif_page

    return whatif_page(c)


def _sweep_table(s: Sweep) -> str:
    from archsim.report.notebook import columns_table

    return columns_table(s.columns, s.units)


def _sweep_record(s: Sweep) -> Any:
    return {"schema": "archsim-sweep/1", "units": dict(s.units), "rows": [*s.rows()]}


def _sweep_page(s: Sweep) -> str:
    from archsim.report.sweep_page import sweep_page, sweep_points

    return sweep_page(sweep_points(s.space, s.requests, s.rows(), s.points))


def _power_table(p: PowerEstimate) -> str:
    from archsim.report.power import power_table

    return power_table(p)


def _power_record(p: PowerEstimate) -> Any:
    from archsim.report.power import power_record

    return power_record(p)


def _tuning_table(t: Tuning) -> str:
    from archsim.report.tune import tune_table

    return tune_table(t)


def _tuning_record(t: Tuning) -> Any:
    from archsim.report.tune import record

    return record(t)


def _tuning_page(t: Tuning) -> str:
    from archsim.report.tune import tune_page

    return tune_page(t)


def _llm_table(g: GenerationEstimate) -> str:
    from archsim.report.llm import llm_table

    return llm_table(g)


def _llm_record(g: GenerationEstimate) -> Any:
    from archsim.report.llm import llm_record

    return llm_record(g)


def _llm_page(g: GenerationEstimate) -> str:
    from archsim.report.llm_page import llm_page

    return llm_page(g)


FORMS = {
    "Comparison": Presentation(table=_comparison_table, record=_comparison_record, page=_comparison_page),
    "CurveComparison": Presentation(table=_curves_table, record=_curves_record, page=_curves_page),
    "Change": Presentation(table=_change_table, record=_change_record, page=_change_page),
    "PowerEstimate": Presentation(table=_power_table, record=_power_record),
    "Tuning": Presentation(table=_tuning_table, record=_tuning_record, page=_tuning_page),
    "GenerationEstimate": Presentation(table=_llm_table, record=_llm_record, page=_llm_page),
    "Sweep": Presentation(table=_sweep_table, record=_sweep_record, page=_sweep_page),
}
