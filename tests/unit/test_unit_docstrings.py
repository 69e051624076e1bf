"""Docstrings of equations: every parameter, units that exist, a worked number that runs."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from types import FunctionType, SimpleNamespace

import archsim.cost
from archsim.base.units import UNITS

# What every reader of the cost layer knows: columns of kernels, the device, the constants, the format of the operands.
COMMON = {"kernels", "device", "constants", "precision", "t", "terms"}
BRACKET = re.compile(r"\[([^\[\]]+)\]")
SHAPE = re.compile(r"[DVKOPSUGN1](, [DVKOPSUGN1])*")
UNIT = {*UNITS, "1", "mm", "1/cm2", "FLOP/clk"}


def equations() -> list[FunctionType]:
    """Every public function of the cost layer."""
    found = []
    for info in pkgutil.iter_modules(archsim.cost.__path__):
        module = importlib.import_module(f"archsim.cost.{info.name}")
        public = [inspect.unwrap(thing) for name, thing in vars(module).items() if not name.startswith("_") and callable(thing)]
        found += [thing for thing in public if inspect.isfunction(thing) and thing.__module__ == module.__name__]
    return found


def flaws(function: FunctionType) -> list[str]:
    """What the docstring of an equation lacks."""
    name, doc = f"{function.__module__}.{function.__name__}", inspect.getdoc(function) or ""
    words, _, example = doc.partition(">>>")
    found = [] if example else [f"{name}: no worked number"]
    found += [f"{name}: nothing says what {parameter} is" for parameter in inspect.signature(function).parameters
              if parameter not in COMMON and not re.search(rf"\b{parameter}\b", words)]  # fmt: skip
    units = [each for text in BRACKET.findall(words) for each in text.split(", ") if each not in UNIT]
    return found + [f"{name}: [{each}] is neither a unit nor a shape" for each in units if not SHAPE.fullmatch(each)]


def test_every_equation_says_what_it_computes_from_what_with_a_worked_number() -> None:
    functions = equations()
    assert len(functions) > 60
    assert [flaw for function in functions for flaw in flaws(function)] == []


def test_a_docstring_that_forgets_a_symbol_is_noticed() -> None:
    def bound(kernels: SimpleNamespace, bytes_moved: float, clock: float) -> float:
        """Time of something [s].

        bytes_moved: traffic [bananas]
        """
        return bytes_moved / clock

    assert [flaw.partition(": ")[2] for flaw in flaws(bound)] == [
        "no worked number", "nothing says what clock is", "[bananas] is neither a unit nor a shape",
    ]  # fmt: skip
