"""The forms of every answer. What draws and writes is imported when somebody looks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from archsim.base.answer import Presentation

if TYPE_CHECKING:
    from archsim.estimation.power_estimate import PowerEstimate
    from archsim.generation.estimate import GenerationEstimate
    from archsim.study.comparison import Comparison, CurveComparison
    from archsim.study.profiled import ProfileComparison
    from archsim.validation.evaluation import Validation


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


def _validation_table(v: Validation) -> str:
    from archsim.report.notebook import validation_table

    return validation_table(v)


def _validation_record(v: Validation) -> Any:
    from archsim.report.validation import provenance_of, record

    return record(v, provenance_of(v, v.data))


def _validation_page(v: Validation) -> str:
    from archsim.report.validation import provenance_of
    from archsim.report.validation_page import validation_page

    return validation_page(v, provenance_of(v, v.data))


def _power_table(p: PowerEstimate) -> str:
    from archsim.report.power import power_table

    return power_table(p)


def _power_record(p: PowerEstimate) -> Any:
    from archsim.report.power import power_record

    return power_record(p)


def _llm_table(g: GenerationEstimate) -> str:
    from archsim.report.llm import llm_table

    return llm_table(g)


def _llm_record(g: GenerationEstimate) -> Any:
    from archsim.report.llm import llm_record

    return llm_record(g)


def _llm_page(g: GenerationEstimate) -> str:
    from archsim.report.llm_page import llm_page

    return llm_page(g)


def _profile_table(p: ProfileComparison) -> str:
    from archsim.report.profile import profile_table

    return profile_table(p)


def _profile_record(p: ProfileComparison) -> Any:
    from archsim.report.profile import profile_record

    return profile_record(p)


def _profile_page(p: ProfileComparison) -> str:
    from archsim.report.profile_page import profile_page

    return profile_page(p)


FORMS = {
    "Comparison": Presentation(table=_comparison_table, record=_comparison_record, page=_comparison_page),
    "CurveComparison": Presentation(table=_curves_table, record=_curves_record, page=_curves_page),
    "Validation": Presentation(table=_validation_table, record=_validation_record, page=_validation_page),
    "PowerEstimate": Presentation(table=_power_table, record=_power_record),
    "GenerationEstimate": Presentation(table=_llm_table, record=_llm_record, page=_llm_page),
    "ProfileComparison": Presentation(table=_profile_table, record=_profile_record, page=_profile_page),
}
