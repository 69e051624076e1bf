"""Rows of whole epochs under a power limit: kept in the corpus, not predicted yet."""

from __future__ import annotations

from archsim.corpus.table import Row
from archsim.validate.case import Case
from archsim.validate.family import Family
from archsim.validate.resolve import Refused


def read(row: Row, file: str) -> list[Case]:
    """No case: a power limit is not a setting of the model, and half of the networks are not described."""
    raise Refused("a run under a power limit is not modelled")


FAMILY = Family(
    name="power limits",
    columns=("source_id", "model", "task", "batch", "metric", "value", "hardware"),
    words=("source_id", "model", "metric", "hardware"),
    numbers=("value",),
    whole=("batch", "n_devices"),
    measured=("value",),
    read=read,
)
