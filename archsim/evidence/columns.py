"""The columns of validated rows: those of the case, and those of the file it came from."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from archsim.evidence.case import Case, Skip

QUANTITY = {"latency_s": "time", "throughput_per_s": "time", "power_w": "power", "energy_j": "energy",
            "system_power_w": "wall power", "system_energy_j": "wall energy", "clock_hz": "clock",
            "bandwidth_bps": "bandwidth", "latency_clk": "latency", "clk_per_warp_load": "clocks",
            "clk_per_iteration": "clocks", "voltage_v": "voltage", "ttft_s": "prefill", "decode_s_per_token": "decode",
            "tpot_s": "decode", "e2e_s": "end to end", "tokens_per_s": "tokens", "energy_j_per_token": "energy"}  # fmt: skip

# name -> value: columns that every row has, whatever its file calls them
OWN: dict[str, Callable[[Case], str | int | None]] = {
    "file": lambda case: case.file,
    "line": lambda case: case.line,
    "source": lambda case: case.source,
    "label": lambda case: case.label,
    "hardware": lambda case: case.hardware,
    "stack": lambda case: case.stack_id,
    "task": lambda case: case.task,
    "batch": lambda case: case.batch,
    "precision": lambda case: case.precision,
    "metric": lambda case: case.metric,
    "split": lambda case: case.split,
}
DERIVED: dict[str, Callable[[Case], str]] = {
    "quantity": lambda case: QUANTITY[case.metric],
    "kind": lambda case: case.spec.kind,
    "architecture": lambda case: case.spec.identity.architecture,
    "framework": lambda case: case.stack.framework,
    "system": lambda case: "" if case.system is None else case.system[0].id,
}

RATES = ("throughput_per_s", "bandwidth_bps", "tokens_per_s")


def error_of(metric: str, measured: float, predicted: float) -> float:
    """predicted / measured - 1 of a time, a power or an energy; of a rate, that of the time that it stands for.

    >>> error_of("latency_s", 1.0, 1.25), error_of("throughput_per_s", 100.0, 80.0)
    (0.25, 0.25)
    """
    return (measured / predicted if metric in RATES else predicted / measured) - 1.0


def quantity(case: Case) -> str:
    """Time, power or energy."""
    return QUANTITY[case.metric]


def column(cases: Sequence[Case], name: str) -> list[str]:
    """One column of all cases, as text; empty where a case has none."""
    own = OWN.get(name) or DERIVED.get(name)
    return [str(own(case)) if own else case.fields.get(name, "") for case in cases]


def written(skip: Skip, name: str) -> str:
    """The value of a column as the file of a skipped row has it; empty where it has none."""
    places = {"source": ("source", "source_id"), "network": ("network", "op"), "metric": ("metric",)}.get(name, (name,))
    return next((skip.fields[place] for place in places if skip.fields.get(place)), "")


def known_columns(cases: Sequence[Case]) -> list[str]:
    """The names that `column` has values for."""
    return list(dict.fromkeys([*OWN, *DERIVED, *(name for case in cases for name in case.fields)]))
