"""How far predictions of a device's own measured rows are off, as the shipped validation found."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from archsim.base.files import data_folder
from archsim.device.catalog import is_shipped
from archsim.device.spec import Spec

FILE = ("reports/validation", "validation.json")


def own_rows(spec: Spec) -> str:
    """What the times of whole networks on a shipped device say of predictions for it; empty without any such row."""
    found = _devices().get(spec.identity.id, {}) if is_shipped(spec) else {}
    if "n" not in found:
        return ""
    n, bias, covered = found["n"], f"{100 * found['bias']:+.0f}", found["coverage"]
    side = "right" if bias[1:] == "0" else f"{bias[1:]} % too {'slow' if bias[0] == '+' else 'fast'}"
    inside = "" if covered is None else f", {100 * covered:.0f} % inside their interval"
    return f"{n:,} measurements of this device: predicted {side} in the median{inside}"


@cache
def _devices() -> Mapping[str, Mapping[str, Any]]:
    folder, name = FILE
    found: Mapping[str, Mapping[str, Any]] = json.loads(data_folder(folder).joinpath(name).read_text("utf-8"))["devices"]
    return found
