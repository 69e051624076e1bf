"""What the calibration says: its constants, the interval of those that were fitted, and those that the cycle model derives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from archsim.calibration.constants import Calibration, Constant
from archsim.render.blocks import Block, Table, Verdict, columns, words


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownConstants:
    """The constants of a calibration whose names begin with `prefix`."""

    calibration: Calibration
    prefix: str

    @property
    def constants(self) -> Mapping[str, Constant]:
        """By name."""
        return {name: c for name, c in self.calibration.constants.items() if name.startswith(self.prefix)}


def record(shown: ShownConstants) -> dict[str, Any]:
    """The constants as plain values, with their factor of uncertainty."""
    spreads = shown.calibration.uncertainties()
    found = {name: asdict(c) | {"uncertainty": spreads.get(name)} for name, c in shown.constants.items()}
    return {"schema": "archsim-calibration/1", "version": shown.calibration.version, "constants": found}


def sections(shown: ShownConstants) -> list[Block]:
    """The blocks of the constants."""
    spreads, rows = shown.calibration.uncertainties(), []
    for name, c in shown.constants.items():
        factor = spreads.get(name)
        near = "" if factor is None else f"{c.value / factor:.3g} to {c.value * factor:.3g}"
        kind = "fitted" if c.fitted else "prior" if c.derived is None else "derived"
        rows.append([words(name), words(f"{c.value:.4g}"), words(near), words(f"{c.low:g} to {c.high:g}"), words(kind),
                     words(c.origin)])  # fmt: skip
    fitted = sum(c.fitted for c in shown.constants.values())
    found: list[Block] = [
        Verdict(title="Calibration", asked=[shown.calibration.version, f"{len(rows)} constants, {fitted} of them fitted"]),
        Table(title="Constants", columns=columns("", "value", "80 % interval", "range", "kind", "origin", numbers=(1,)),
              rows=rows, long=True),
    ]  # fmt: skip
    derived = {name: c.derived for name, c in shown.constants.items() if c.derived is not None}
    own = [[words(of), *(words(f"{values[of]:.4g}" if of in values else "") for values in derived.values())]
           for of in sorted({of for values in derived.values() for of in values})]  # fmt: skip
    note = "By the cycle model, for each core."
    heads = columns("", *derived, numbers=range(1, len(derived) + 1))
    return [*found, Table(title="Core", columns=heads, rows=own, notes=[note])] if derived else found
