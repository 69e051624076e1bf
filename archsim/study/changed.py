"""The arguments of an estimate that a what-if changes beside the device, and their values from text."""

from __future__ import annotations

from collections.abc import Mapping

from archsim.base.errors import UnknownName
from archsim.base.units import parse

UNITS_OF = {"clock": "Hz", "memory_clock": "Hz", "power_limit": "W"}
WHOLE = ("batch", "threads", "seq_len")
CHANGES = ("hw", "batch", "precision", "stack", "task", "optimiser", "clock", "memory_clock", "threads", "power_limit", "seq_len",
           "host_cpu")  # fmt: skip


def changed_argument(name: str, written: str) -> str | int | float:
    """The value of an argument as it is written, in its unit. Raises UnknownName, or ValueError for what is no value of it.

    >>> changed_argument("clock", "600 MHz"), changed_argument("batch", "8"), changed_argument("stack", "pytorch-2")
    (600000000.0, 8, 'pytorch-2')
    """
    if name not in CHANGES:
        hint = "values of the device stand with --set and --scale, in a study under `change`" if "." in name else ""
        raise UnknownName("argument", name, CHANGES, hint=hint)
    if name in UNITS_OF:
        return parse(written, UNITS_OF[name])
    return int(written) if name in WHOLE else written


def changed_arguments(written: Mapping[str, str | int]) -> dict[str, str | int | float]:
    """All of them. Raises ValueError that names the argument."""
    found: dict[str, str | int | float] = {}
    for name, value in written.items():
        try:
            found[name] = changed_argument(name, str(value))
        except UnknownName as error:
            raise ValueError(str(error)) from None
        except ValueError:
            raise ValueError(f"{value!r} is no value of {name}") from None
    return found
