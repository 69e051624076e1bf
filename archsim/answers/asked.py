"""A request in words and as plain values, and its knobs: what sensitivities, searches, targets and sweeps have in common."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

from archsim.answers.whatif import FEW, share_words
from archsim.base.units import show
from archsim.device.variant import called, device_fields
from archsim.estimation.request import Request
from archsim.study.knob import meaning
from archsim.study.objective import OUTPUTS


def asked(request: Request, varied: Collection[str] = ()) -> list[str]:
    """What runs on what, part by part, without what is `varied`."""
    parts = {"task": request.task.replace("_", " "), "batch": f"batch {request.batch}", "precision": request.precision,
             "stack": request.stack.id, "fidelity": f"{request.fidelity.name} model"}  # fmt: skip
    return [f"{request.network} on {called(request.spec)}", *(text for name, text in parts.items() if name not in varied)]


def asked_record(request: Request) -> dict[str, Any]:
    """A request as plain values."""
    return {"network": request.network, **device_fields(request.spec), "stack": request.stack.id, "task": request.task,
            "batch": request.batch, "precision": request.precision}  # fmt: skip


def knob_text(request: Request, knob: str, value: Any) -> str:
    """The value of a knob with its unit."""
    if isinstance(value, str):
        return value
    if math.isnan(value):
        return "-"
    return show(float(value), meaning(request.spec.kind, knob).unit, 4)


def changed_by(output: str, ratio: float) -> str:
    """An output beside another one, in words."""
    if abs(ratio - 1.0) < FEW:
        return "the same"
    name = OUTPUTS[output][0].replace("_", " ")
    return share_words(ratio, name).removesuffix(f" {name}").removesuffix(" the")
