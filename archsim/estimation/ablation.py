"""Parts of the model that can be left out, to see what each contributes."""

from __future__ import annotations

from dataclasses import replace

from archsim.stack import catalog as stacks
from archsim.stack.stack import Stack

PARTS = ("waves", "l2", "latency", "algorithms", "clock", "sustained", "launch", "host", "passes")


def reduced(stack: Stack, without: frozenset[str]) -> Stack:
    """The stack without its other algorithms, or without passes beyond the first, where these parts are left out.

    algorithms: convolutions take the first algorithm of each phase, which always applies
    passes: ops read and write each tensor as often as those of the stack `ideal`
    """
    if "passes" in without:
        base = stacks.find("ideal")
        stack = replace(stack, passes=base.passes, optimiser_passes=base.optimiser_passes)
    if "algorithms" in without:
        menu = {phase: dict([next(iter(rows.items()))]) for phase, rows in stack.conv.algorithms.items()}
        stack = replace(stack, conv=replace(stack.conv, algorithms=menu))
    return stack
