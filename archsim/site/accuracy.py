"""The page of how far predictions are from measurements, from the summary that `archsim validate` wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from archsim.site.markdown import plain, table

SCORES = ("values", "median error", "90 % below", "bias", "in the 80 % interval")
HEAD = ("", *SCORES)
QUANTITIES = {  # of a served model, in the order of its run
    "prefill": "time to first token", "decode": "time per output token", "end to end": "end to end",
    "tokens": "tokens per second", "energy": "energy per token", "power": "power",
}  # fmt: skip
VIEWS = {"by_class": "By class", "by_source": "By source of the measurements"}


def page(summary: Mapping[str, Any], served: Mapping[str, Any] | None = None) -> str:
    """Errors of the shipped model on the shipped measurements, and with constants fitted without what is predicted.

    served: the same of language models that engines served, where it has been written
    """
    parts = [
        "# Accuracy\n\nPredictions of the shipped model beside the shipped measurements, as `archsim validate` prints them "
        "([validation](validation.md)). Constants were fitted in part to these rows; what they reach on devices, networks, "
        "stacks and sources that no constant has seen is the table of what is held out. What other tools reach is on the page of "
        "[predictors](predictors.md).\n"
    ]
    for key, title in VIEWS.items():
        rows = [_row(f"{name}, {metric}", one) for name, metrics in sorted(summary[key].items())
                for metric, one in sorted(metrics.items())]  # fmt: skip
        parts.append(f"## {title}\n\n{table(HEAD, rows)}")
    held = [_row(f"{kind.upper()}s, {what} held out", one) for what, kinds in sorted(summary["cross_validation"].items())
            for kind, one in sorted(kinds.items())]  # fmt: skip
    parts.append(f"## Held out\n\n{table(HEAD, held)}")
    return "\n".join([*parts, *(_served(served) if served else ())])


def _served(served: Mapping[str, Any]) -> list[str]:
    """Language models by quantity, by engine and card, and each by itself."""
    values, left = sum(one["n"] for one in served["overall"]), sum(served["skipped"].values())
    sources = " and ".join(f"`{name}` ({count:,})" for name, count in sorted(served["sources"].items()))
    lead = (
        f"## Served language models\n\n{values:,} values of published runs, of {sources}: batches that arrive at once, and a "
        "number of requests that is kept. No constant is fitted to them; but the clocks that each engine's host takes between "
        "two steps, one to three numbers of its stack, follow from these runs, so that they say little of an engine that nobody "
        f"measured. {left} further values cannot be predicted; `archsim validate --measurements "
        "reports/published/serving/llm_serving.csv.gz` says why, and `archsim llm` shows the nearest run beside its answer "
        "([llm](llm.md)). An engine is called as its source calls it. Intervals are those that `archsim llm` states; "
        "where less than 80 % of the values lie in one, it is too narrow.\n"
    )
    order = list(QUANTITIES)
    overall = [_row(QUANTITIES[one["quantity"]], one)
               for one in sorted(served["overall"], key=lambda one: order.index(one["quantity"]))]  # fmt: skip
    return [lead, table(HEAD, overall), "### By engine and card\n", _records(served["cards"], ("engine", "hardware", "quantity")),
            "### By model\n", _records(served["groups"], ("engine", "hardware", "model", "quantity"))]  # fmt: skip


def _records(records: Sequence[Mapping[str, Any]], by: Sequence[str]) -> str:
    shown = {"hardware": "card"}
    rows = [[*(plain(QUANTITIES.get(one[name], one[name])) for name in by), *_row("", one)[1:]] for one in records]
    return table((*(shown.get(name, name) for name in by), *SCORES), rows)


def _row(name: str, one: Mapping[str, Any]) -> list[str]:
    within = one["coverage"]
    median, p90 = (f"{100 * one[key]:.1f} %" for key in ("median", "p90"))
    bias, inside = f"{100 * one['bias']:+.1f} %", "" if within is None else f"{100 * within:.0f} %"
    return [plain(name), f"{one['n']:,}", median, p90, bias, inside]
