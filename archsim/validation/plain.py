"""What an estimate answers who knows only the words of a published row, and which conditions of the source the words leave out.

The words are those of the row's columns: network, hardware, stack, task, batch, precision, threads of a CPU, tokens of a
sequence. The rest takes its default: the clock of the spec, the usual host CPU, the graph and the inputs of the stack.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from archsim.base.errors import ArchsimError
from archsim.calibration.constants import Calibration
from archsim.cost.cost import Array
from archsim.estimation.measured import request_of, value_of
from archsim.estimation.pipeline import run
from archsim.estimation.references import differences
from archsim.estimation.request import Request, make_request
from archsim.evidence.case import Case

Conditions = tuple[str, ...]


def plain_values(cases: Sequence[Case], calibration: Calibration, fidelity: str) -> tuple[Array, list[Conditions]]:
    """For each case the plain prediction in the unit of its metric, and the conditions of the source that it lacks.

    NaN and no conditions for rows of single ops, of several devices, and where the words are not understood.
    """
    found, lacking = np.full(len(cases), np.nan), [Conditions()] * len(cases)
    for i, case in enumerate(cases):
        if case.work is None or case.group is not None or case.anchor is not None:
            continue
        try:
            request = plain_request(case, calibration, fidelity)
            found[i] = value_of(case, request, run(request))
            lacking[i] = differences(request_of(case, calibration, fidelity), request)
        except ArchsimError:
            continue
    return found, lacking


def plain_request(case: Case, calibration: Calibration, fidelity: str) -> Request:
    """What the row's own words ask. Raises ArchsimError for words that `archsim estimate` does not take."""
    cells = case.fields
    return make_request(
        cells["network"], cells["hardware"], batch=int(cells["batch"]), precision=cells["precision"], task=cells["task"],
        stack=cells["stack"], threads=case.threads, seq_len=int(cells["seq_len"]) if cells.get("seq_len") else None,
        calibration=calibration, fidelity=fidelity,
    )  # fmt: skip
