"""The page of how far predictions are from measurements, from the summary that `archsim validate` wrote."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from archsim.evidence.claims import NOTE, Claim
from archsim.render.markdown import table
from archsim.site.markdown import plain

SPACE = "\u00a0"  # at which no line is broken
SCORES = ("values", "median error", f"90{SPACE}% below", "bias", f"in the 80{SPACE}% interval")
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
        parts.append(f"## {title}\n\n{table(HEAD, rows, range(1, len(HEAD)))}")
    held = [_row(f"{kind.upper()}s, {what} held out", one) for what, kinds in sorted(summary["cross_validation"].items())
            for kind, one in sorted(kinds.items())]  # fmt: skip
    parts.append(f"## Held out\n\n{table(HEAD, held, range(1, len(HEAD)))}")
    worth = [[plain(part), f"{100 * one['median']:.1f}{SPACE}%"] for part, one in sorted(summary["ablation"].items())]
    parts.append(f"## What parts are worth to times of networks\n\n{table(('without', SCORES[1]), worth, (1,))}")
    return "\n".join([*parts, *(_served(served) if served else ())])


def others(claims: Iterable[Claim]) -> str:
    """What other tools say of themselves: an item for each, its source as a link."""
    items = "".join(f"- **{plain(one.tool)}**: {plain(one.says)}; {plain(one.of)}. Here: {plain(one.here)}. "
                    f"[{plain(one.source)}]({one.url})\n" for one in claims)  # fmt: skip
    return f"\n## What other tools say of themselves\n\n{NOTE}\n\n{items}"


def _served(served: Mapping[str, Any]) -> list[str]:
    """Language models by quantity, by engine and card, and each by itself."""
    values, left = sum(one["n"] for one in served["overall"]), sum(served["skipped"].values())
    sources = " and ".join(f"`{name}` ({count:,})" for name, count in sorted(served["sources"].items()))
    lead = (
        f"## Served language models\n\n{values:,} values of published runs, of {sources}: batches that arrive at once, and a "
        "number of requests that is kept. No constant is fitted to them; but the clocks that each engine's host takes between "
        "two steps, one to three numbers of its stack, follow from these runs, but for SGLang's, which are assumed: its rows are "
        f"what to expect of an engine that nobody measured. {left} further values cannot be predicted; `archsim validate "
        "--measurements reports/published/serving/llm_serving.csv.gz` says why, and `archsim llm` shows the nearest run beside "
        "its answer "
        "([llm](llm.md)). An engine is called as its source calls it. Intervals are those that `archsim llm` states; "
        "where less than 80 % of the values lie in one, it is too narrow.\n"
    )
    parts = [lead, _records(served["overall"]), "### By engine and card\n"]
    runs = dict.fromkeys((one["engine"], one["hardware"]) for one in served["cards"])
    for run in runs:
        cards, models = ([one for one in served[name] if (one["engine"], one["hardware"]) == run] for name in ("cards", "groups"))
        parts += [f"#### {plain(run[0])} on {plain(run[1])}\n", _records([*cards, *models])]
    return parts


def _records(records: Sequence[Mapping[str, Any]]) -> str:
    """Scores of all models and by model, each quantity in the order of a run."""
    order = list(QUANTITIES)
    ordered = sorted(records, key=lambda one: (one.get("model", ""), order.index(one["quantity"])))
    rows = [[plain(one["model"]) if "model" in one else f"all{SPACE}models", *_row(QUANTITIES[one["quantity"]], one)]
            for one in ordered]  # fmt: skip
    return table(("model", "quantity", *SCORES), rows, range(2, 2 + len(SCORES)))


def _row(name: str, one: Mapping[str, Any]) -> list[str]:
    within = one["coverage"]
    median, p90 = (f"{100 * one[key]:.1f}{SPACE}%" for key in ("median", "p90"))
    bias, inside = f"{100 * one['bias']:+.1f}{SPACE}%", "" if within is None else f"{100 * within:.0f}{SPACE}%"
    return [plain(name).replace(" ", SPACE), f"{one['n']:,}", median, p90, bias, inside]
