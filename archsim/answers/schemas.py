"""The JSON Schemas of what `--json` prints: `archsim show schema NAME` makes them from the records of the models.

A new field of a record is therefore in its schema; the contract suite holds that the outputs of every command are as their schema
says, without a key that it does not name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from archsim.answers.schema_types import (
    Schema,
    by_name,
    either,
    listed,
    merged,
    of_type,
    or_null,
    record_of,
    table,
)

DIALECT = "https://json-schema.org/draft/2020-12/schema"
TEXT, NUMBER, WHOLE, YES, ANY = ({"type": "string"}, {"type": "number"}, {"type": "integer"}, {"type": "boolean"}, Schema())
NUMBERS, MAYBE = by_name(NUMBER), or_null(NUMBER)
DEVICE = {"hardware": TEXT, "hardware_name": TEXT, "changes": by_name(TEXT)}
ASKED = {"network": TEXT, **DEVICE, "stack": TEXT, "task": TEXT, "batch": WHOLE, "precision": TEXT}
ROW = by_name({"type": ["string", "number", "boolean", "null"]})


def _named(name: str) -> Schema:
    return {"const": name}


def estimate() -> Schema:
    """`archsim estimate --json`."""
    from archsim.answers.estimate import SCALARS
    from archsim.estimation.result import SCHEMA, Estimate

    rest = ("held_out", "memory", "relief_s", "breakdown_s", "energy_breakdown_j", "wall", "power_over_time", "ops", "references",
            "assumptions", "assumed_values", "warnings", "provenance")  # fmt: skip
    return merged(table({"schema": _named(SCHEMA)}), record_of(Estimate, *SCALARS, *rest))


def power() -> Schema:
    """`archsim power --json`."""
    from archsim.answers.power import SCHEMA
    from archsim.estimation.power_estimate import PowerEstimate

    one = merged(table({"schema": _named(SCHEMA)}), record_of(PowerEstimate))
    return either(one, listed(one))


def llm() -> Schema:
    """`archsim llm --json`."""
    from archsim.generation.estimate import SCHEMA, GenerationEstimate

    return merged(table({"schema": _named(SCHEMA)}), record_of(GenerationEstimate))


def serve_llm() -> Schema:
    """`archsim simulate serve --llm --json`."""
    from archsim.simulate.serve_llm import SCHEMA, TextServing

    return merged(table({"schema": _named(SCHEMA)}), record_of(TextServing))


def compare() -> Schema:
    """`archsim compare --json`."""
    from archsim.study.stack_change import StackChange
    from archsim.study.within import BestStack

    where = {"where": listed(TEXT), "missed": or_null(TEXT), "best_stack": or_null(of_type(BestStack))}  # of `--where`
    own = {**_own(), "ranking": by_name(or_null(_place())), "besides_the_device": listed(_besides()), **where}
    row = merged(estimate(), table({**own, "stack_change": or_null(of_type(StackChange))}, optional=tuple(where)))
    return {"description": "For each device an estimate with its price, costs and places; then those that cannot run it.",
            **listed(either(row, merged(table({"network": TEXT}), _excluded())))}  # fmt: skip


def _own() -> dict[str, Schema]:
    """What a comparison adds to an estimate."""
    from archsim.study.price import Price
    from archsim.study.usage import JobTotals, Workload

    cost = table({
        "usd_per_hour": MAYBE, "usd_per_million": MAYBE, "hour_by_part": or_null(NUMBERS), "electricity_usd_per_kwh": MAYBE,
        "lifetime_years": NUMBER, "duty": NUMBER, "pue": NUMBER, "assumed": listed(TEXT),
    })  # fmt: skip
    return {
        "latency_s": NUMBER, "throughput_per_s": NUMBER, "energy_j": NUMBER, "throughput_per_w": NUMBER, "price_usd": MAYBE,
        "throughput_per_usd": MAYBE, "copies": YES, "price": or_null(of_type(Price)), "cost": cost,
        "job": or_null(merged(of_type(Workload), of_type(JobTotals))),
    }  # fmt: skip


def _place() -> Schema:
    return table({
        "place": WHOLE, "score": NUMBER, "before_next": MAYBE, "best": NUMBER, "whole_order": NUMBER, "correlation": MAYBE,
        "correlation_with_next": MAYBE,
    })  # fmt: skip


def _besides() -> Schema:
    return table({"what": TEXT, "values": by_name(listed(TEXT)), "range": or_null(listed(ANY))})


def _excluded() -> Schema:
    return table({"hardware": TEXT, "stack": or_null(TEXT), "cannot_run": TEXT})


def curves() -> Schema:
    """`archsim compare --batch RANGE --json`."""
    from archsim.answers.compare_curves import SCHEMA
    from archsim.study.crossover import Crossing, Payoff

    point = table({"batch": WHOLE, **_own(), "latency_interval_s": listed(NUMBER), "per_sample_s": NUMBER, "efficiency": NUMBER,
                   "fits": YES, "memory_bytes": NUMBER})  # fmt: skip
    curve = table({"hardware": TEXT, "hardware_name": TEXT, "name": TEXT, "stack": TEXT, "max_batch": or_null(WHOLE),
                   "points": listed(point),
                   "curvature": listed(table({"curvature": TEXT, "from": WHOLE, "to": WHOLE}))})  # fmt: skip
    first = or_null(table({"name": TEXT, "score": NUMBER, "probability": NUMBER}))
    best = {**table({"batch": WHOLE}), "additionalProperties": first}
    one = table({
        "schema": _named(SCHEMA), "network": TEXT, "copies": YES, "curves": listed(curve), "best": listed(best),
        "crossings": listed(of_type(Crossing)),
        "payoffs": listed(table({"home": TEXT, "guest": TEXT, "ops": listed(of_type(Payoff))})),
        "besides_the_device": listed(_besides()), "cannot_run": listed(_excluded()), "notes": listed(TEXT),
    })  # fmt: skip
    return either(one, listed(one))


def whatif() -> Schema:
    """`archsim whatif --json`."""
    from archsim.answers.whatif import SCHEMA
    from archsim.study.silicon import DieEstimate

    side = or_null(table({"time_s": NUMBER, "bound": TEXT, "limit": TEXT, "energy_j": NUMBER}))
    op = table({"name": TEXT, "kind": TEXT, "ratio": MAYBE, "moved": YES, "before": side, "after": side})
    return table({
        "schema": _named(SCHEMA), "changes": listed(TEXT), "followed": by_name(listed(ANY)), "changed": YES,
        "ratios": NUMBERS, "moves": listed(table({"before": TEXT, "after": TEXT, "ops": listed(TEXT)})), "ops": listed(op),
        "before": estimate(), "after": estimate(), "dies": or_null(listed(of_type(DieEstimate))),
    })  # fmt: skip


def profile() -> Schema:
    """`archsim profile --json`."""
    from archsim.study.profiled import SCHEMA, ProfileComparison

    return merged(table({"schema": _named(SCHEMA)}), record_of(ProfileComparison))


def sensitivity() -> Schema:
    """`archsim sensitivity --json`."""
    from archsim.answers.sensitivity import SCHEMA

    value = table({
        "key": TEXT, "unit": TEXT, "value": NUMBER, "elasticity": or_null(NUMBERS), "one_sided": or_null(by_name(listed(MAYBE))),
        "span_low": MAYBE, "span_high": MAYBE, "log_ratio": or_null(by_name(listed(MAYBE))), "informational": YES, "moves": TEXT,
        "note": TEXT,
    })  # fmt: skip
    return table({"schema": _named(SCHEMA), **ASKED, "step": NUMBER, "span": NUMBER, "limited_by": TEXT, "relief_s": NUMBERS,
                  "host_floor_s": NUMBER, "values": listed(value)})  # fmt: skip


def search() -> Schema:
    """`archsim search --json`."""
    from archsim.answers.search import SCHEMA

    return table({
        "schema": _named(SCHEMA), **ASKED, "wanted": TEXT, "how": TEXT, "points": WHOLE, "feasible": WHOLE, "no_machine": WHOLE,
        "no_mask": WHOLE, "base": ROW, "best": listed(ROW), "front": listed(ROW), "front_of": listed(TEXT),
        "estimated": listed(TEXT), "relief": or_null(table({"best": NUMBERS, "base": NUMBERS})),
    })  # fmt: skip


def tune() -> Schema:
    """`archsim tune --json`."""
    from archsim.answers.tune import SCHEMA
    from archsim.study.tune import Tuning

    return merged(table({"schema": _named(SCHEMA)}), record_of(Tuning))


def target() -> Schema:
    """`archsim search --target OUTPUT=VALUE --json`."""
    way = table({"knobs": listed(TEXT), "factor": MAYBE, "settings": ROW, "reached": MAYBE, "outputs": or_null(ROW),
                 "limits": or_null(by_name(ANY))})  # fmt: skip
    return table({"schema": _named("archsim-target/1"), "network": TEXT, **DEVICE, "output": TEXT, "limit": NUMBER, "base": ROW,
                  "ways": listed(way)})  # fmt: skip


def serve() -> Schema:
    """`archsim simulate serve --json`."""
    from archsim.simulate.serve import SCHEMA, Serving

    batching = table({"max": WHOLE, "wait_s": NUMBER})
    return merged(table({"schema": _named(SCHEMA)}), record_of(Serving), table({"batching": batching}))


def train() -> Schema:
    """`archsim simulate train --json`."""
    from archsim.simulate.train import SCHEMA, Training

    return merged(table({"schema": _named(SCHEMA)}), record_of(Training))


def allreduce() -> Schema:
    """`archsim simulate allreduce --json`."""
    from archsim.simulate.allreduce import AllReduceTime

    return table({"schema": _named("archsim-allreduce/1"), "node": TEXT, "rows": listed(of_type(AllReduceTime))})


def cache() -> Schema:
    """`archsim cache --json`."""
    from archsim.explain.caches import SCHEMA, CacheReport

    return merged(table({"schema": _named(SCHEMA)}), record_of(CacheReport))


def explain() -> Schema:
    """`archsim explain --layer NAME --json`."""
    from archsim.explain.layer import SCHEMA, Explanation

    return merged(table({"schema": _named(SCHEMA)}), record_of(Explanation))


def simulated() -> Schema:
    """`archsim explain --layer NAME --fidelity cycle --json`."""
    from archsim.explain.simulated import SCHEMA, SimulatedLayer

    return merged(table({"schema": _named(SCHEMA)}), record_of(SimulatedLayer))


def slowest() -> Schema:
    """`archsim explain --json`: the ops from which a layer is chosen."""
    from archsim.explain.layer import Slow

    return listed(of_type(Slow))


def validate() -> Schema:
    """`archsim validate --json`."""
    from archsim.answers.validation import SCHEMA
    from archsim.evidence.columns import OWN

    group = _group_score()
    numbers: dict[str, Schema] = {"measured": NUMBER, "predicted": NUMBER, "error": NUMBER, "lo": MAYBE, "hi": MAYBE}
    own = {name: WHOLE if name in ("line", "batch") else TEXT for name in OWN}
    row = {**table({**own, **numbers, "inside": or_null(YES), "reason": TEXT}),
           "additionalProperties": {"type": ["string", "number", "null"]}}  # fmt: skip
    skip = table({"file": TEXT, "row": WHOLE, "reason": TEXT, "source": TEXT, "hardware": TEXT})
    return table({
        "schema": _named(SCHEMA), "fidelity": TEXT, "without": listed(TEXT), "cross_validated": or_null(TEXT),
        "provenance": by_name(TEXT), "groups": listed(group), "overall": listed(group), "rows": listed(row),
        "skipped": listed(skip), "skipped_by_reason": by_name(WHOLE),
    })  # fmt: skip


def _group_score() -> Schema:
    """The score of a group of rows."""
    figures = {"n": WHOLE, "mape": NUMBER, "mape_interval": listed(NUMBER), "median_ape": NUMBER, "p90_ape": NUMBER,
               "bias": NUMBER}  # fmt: skip
    return table({"by": by_name(TEXT), **figures, "coverage": MAYBE, "kendall_tau": MAYBE, "kendall_tau_least": MAYBE,
                  "kendall_tau_groups": WHOLE, "stack_pairs": WHOLE, "stack_pairs_in_order": WHOLE,
                  "baselines": by_name(table(figures))})  # fmt: skip


def scoreboard() -> Schema:
    """`archsim validate --predictor ... --json`."""
    from archsim.answers.scoreboard import SCHEMA
    from archsim.evidence.columns import OWN

    group = listed(_group_score())
    one = table({"name": TEXT, "about": TEXT, "seconds": MAYBE, "answered": WHOLE, "overall": group, "groups": group,
                 "common": group})  # fmt: skip
    own = {name: WHOLE if name in ("line", "batch") else TEXT for name in OWN}
    value = table({"id": TEXT, **own, "measured": NUMBER, "predictor": TEXT, "predicted": NUMBER, "error": NUMBER, "lo": MAYBE,
                   "hi": MAYBE})  # fmt: skip
    return table({"schema": _named(SCHEMA), "fidelity": TEXT, "provenance": by_name(TEXT), "asked": WHOLE, "rows": WHOLE,
                  "skipped": WHOLE, "predictors": listed(one), "predictions": listed(value),
                  "claims": listed(by_name(TEXT))})  # fmt: skip


def _entry() -> Schema:
    """One value of a spec with its origin."""
    return table({"key": TEXT, "value": {"type": ["string", "number"]}, "written": TEXT, "source": TEXT, "kind": TEXT,
                  "note": TEXT, "file": TEXT, "clock": TEXT})  # fmt: skip


def hw() -> Schema:
    """`archsim show hw NAME --json`."""
    from archsim.device.device import Identity

    key = table({"type": TEXT, "unit": TEXT, "range": TEXT, "meaning": TEXT, "informs_only": YES, "inherited": YES,
                 "required": YES})  # fmt: skip
    return table({"identity": of_type(Identity), "kind": TEXT, "hash": TEXT, "values": by_name(_entry()), "keys": by_name(key),
                  "stated": by_name(_entry())})  # fmt: skip


def node() -> Schema:
    """`archsim show node NAME --json`."""
    link = table({"from": TEXT, "to": TEXT, "kind": TEXT, "count": WHOLE})
    return table({"schema": _named("archsim-node/1"), "id": TEXT, "name": TEXT, "devices": WHOLE, "holds": or_null(TEXT),
                  "values": by_name(_entry()), "links": listed(link)})  # fmt: skip


def net() -> Schema:
    """`archsim show net NAME --json`."""
    size: Schema = {"type": ["integer", "string"]}
    op = table({"name": TEXT, "kind": TEXT, "inputs": listed(TEXT), "output": listed(size), "macs": WHOLE, "flop": NUMBER,
                "parameters": WHOLE})  # fmt: skip
    operator = table({"operator": TEXT, "nodes": WHOLE, "status": TEXT, "why": TEXT})
    whole: Schema = {"type": ["integer", "null"]}  # where operators of the file are refused
    return table({"schema": _named("archsim-network/1"), "network": TEXT, "source": TEXT, "macs": whole, "flop": MAYBE,
                  "parameters": whole, "sizes": by_name(WHOLE), "ops": listed(op), "operators": listed(operator)})  # fmt: skip


def calibration() -> Schema:
    """`archsim show calibration --json`."""
    from archsim.calibration.constants import Constant

    constant = merged(of_type(Constant), table({"uncertainty": MAYBE}))
    return table({"schema": _named("archsim-calibration/1"), "version": TEXT, "constants": by_name(constant)})


def names() -> Schema:
    """`archsim list WHAT --json`."""
    return listed(by_name(TEXT))


def sm() -> Schema:
    """`archsim simulate sm --json`."""
    from archsim.cycle.stalls import StalledInstruction
    from archsim.simulate.sm import SCHEMA

    return table({
        "schema": _named(SCHEMA), "hardware": TEXT, "kernel": TEXT, "clock_hz": NUMBER, "scheduler": TEXT, "time_s": NUMBER,
        "clocks": NUMBER, "ctas": WHOLE, "resident_ctas": WHOLE, "occupancy": NUMBER, "achieved_occupancy": NUMBER,
        "instructions": WHOLE,
        "instructions_per_clock": NUMBER, "issue_use": NUMBER, "pipe_use": NUMBERS, "peak_share": MAYBE,
        "bandwidth_bps": NUMBERS, "energy_j": NUMBERS, "power_w": NUMBER, "stalls": NUMBERS,
        "stalled": listed(of_type(StalledInstruction)),
    })  # fmt: skip


def core() -> Schema:
    """`archsim simulate core --json`."""
    from archsim.simulate.core import SCHEMA

    one = table({
        "name": TEXT, "isa": TEXT, "cycles": NUMBER, "measured": MAYBE, "error": MAYBE, "first_cycles": NUMBER,
        "operations": WHOLE, "micro_operations": NUMBER, "flop": NUMBER, "flop_per_clock": NUMBER, "peak_flop_per_clock": MAYBE,
        "peak_share": MAYBE, "bytes_loaded": WHOLE, "bytes_stored": WHOLE, "binds": TEXT, "explained": NUMBER, "bounds": NUMBERS,
        "ports": NUMBERS, "waits": NUMBERS, "lines": NUMBERS,
        "trace": listed(table(dict.fromkeys(("row", "iteration", "renamed", "started", "ended", "retired", "port"), WHOLE))),
    }, optional=("trace",))  # fmt: skip
    return table({"schema": _named(SCHEMA), "hardware": TEXT, "clock_hz": NUMBER, "loops": listed(one),
                  "skipped": listed(table({"name": TEXT, "reason": TEXT}))})  # fmt: skip


def stack() -> Schema:
    """`archsim show stack NAME --json`."""
    from archsim.answers.stack import SCHEMA

    value = table({"value": ANY, "component": TEXT, "source": TEXT})
    release = table(dict.fromkeys(("part", "axis", "name", "version", "changed", "effect", "source", "date", "block"), TEXT))
    return table({"schema": _named(SCHEMA), "id": TEXT, "parts": by_name(TEXT), "digest": TEXT, "fuses": TEXT,
                  "releases": listed(release), "values": by_name(value), "keys": by_name(by_name(ANY))})  # fmt: skip


def sweep() -> Schema:
    """`archsim sweep --json`, and `to_dict()` of a sweep from Python."""
    return table({"schema": _named("archsim-sweep/1"), "units": by_name(TEXT), "rows": listed(ROW)})


SCHEMAS: dict[str, Callable[[], Schema]] = {
    function.__name__: function
    for function in (estimate, power, llm, compare, curves, whatif, sensitivity, search, target, tune, serve, serve_llm,
                     profile, train, allreduce, cache,
                     explain, simulated, slowest, validate, scoreboard, hw, node, net, stack, calibration, names, sm, core, sweep)
}  # fmt: skip


def schema_of(name: str) -> Schema:
    """The schema of that name, with its title. Raises KeyError."""
    about = (SCHEMAS[name].__doc__ or "").strip()
    found: dict[str, Any] = {"$schema": DIALECT, "title": about.rstrip(".")}
    return found | SCHEMAS[name]()
