"""What the package offers: an estimate, which shows itself in a notebook."""

from __future__ import annotations

from archsim.estimation.estimate import estimate
from archsim.estimation.result import Estimate
from archsim.report.notebook import notebook_table

__all__ = ["Estimate", "estimate"]

Estimate.html = notebook_table
