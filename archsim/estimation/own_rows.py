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


def own_score(spec: Spec) -> Mapping[str, Any]:
    """`n`, `bias`, `median`, `coverage` of predictions of whole networks on a shipped device; empty without any measured one."""
    found = _devices().get(spec.identity.id, {}) if is_shipped(spec) else {}
    return found if "n" in found else {}


def own_rows(spec: Spec) -> str:
    """What the times of whole networks on a shipped device say of predictions for it; empty without any such row."""
    found = own_score(spec)
    if not found:
        return ""
    n, bias, covered = found["n"], found["bias"], found["coverage"]
    off = f"{100 * abs(bias):.0f} % too {'slow' if bias > 0 else 'fast'} in the median"
    inside = "" if covered is None else f", {100 * covered:.0f} % of them inside their interval"
    return f"the {n:,} measured times of {spec.identity.id}: {off}, half of them within {100 * found['median']:.0f} %{inside}"


@cache
def _devices() -> Mapping[str, Mapping[str, Any]]:
    folder, name = FILE
    found: Mapping[str, Mapping[str, Any]] = json.loads(data_folder(folder).joinpath(name).read_text("utf-8"))["devices"]
    return found
