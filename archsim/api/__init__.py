"""What the package offers from Python: a function for each question, and the types of its answers."""

from __future__ import annotations

from archsim.answers import figures_of, notebook_of, page_of, record_of
from archsim.api.functions import compare, estimate, llm, power, profile, register_op, sweep, tune, validate, whatif
from archsim.base.record import Answer, Presentation
from archsim.estimation.power import PowerEstimate
from archsim.estimation.result import Estimate

__all__ = [
    "Estimate", "PowerEstimate", "compare", "estimate", "llm", "power", "profile", "register_op", "sweep", "tune", "validate",
    "whatif",
]  # fmt: skip

Answer.forms = Presentation(notebook=notebook_of, record=record_of, page=page_of, figures=figures_of)
