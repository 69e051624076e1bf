"""The page of how far predictions are from measurements, from the summary that `archsim validate` wrote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from archsim.site.markdown import plain, table

HEAD = ("", "values", "median error", "90 % below", "bias", "in the 80 % interval")
VIEWS = {"by_class": "By class", "by_source": "By source of the measurements"}


def page(summary: Mapping[str, Any]) -> str:
    """Errors of the shipped model on the shipped measurements, and with constants fitted without what is predicted."""
    parts = [
        "# Accuracy\n\nPredictions of the shipped model beside the shipped measurements, as `archsim validate` prints them "
        "([validation](validation.md)). Constants were fitted in part to these rows; what they reach on devices, networks, "
        "stacks and sources that no constant has seen is the last table.\n"
    ]
    for key, title in VIEWS.items():
        rows = [_row(f"{name}, {metric}", one) for name, metrics in sorted(summary[key].items())
                for metric, one in sorted(metrics.items())]  # fmt: skip
        parts.append(f"## {title}\n\n{table(HEAD, rows)}")
    held = [_row(f"{kind.upper()}s, {what} held out", one) for what, kinds in sorted(summary["cross_validation"].items())
            for kind, one in sorted(kinds.items())]  # fmt: skip
    parts.append(f"## Held out\n\n{table(HEAD, held)}")
    return "\n".join(parts)


def _row(name: str, one: Mapping[str, Any]) -> list[str]:
    within = one["coverage"]
    median, p90 = (f"{100 * one[key]:.1f} %" for key in ("median", "p90"))
    bias, inside = f"{100 * one['bias']:+.1f} %", "" if within is None else f"{100 * within:.0f} %"
    return [plain(name), f"{one['n']:,}", median, p90, bias, inside]
