"""All patterns, in the order in which they build on each other."""

from __future__ import annotations

from collections.abc import Callable

from archsim.trace.readers.graph import NodeGraph
from archsim.trace.readers.patterns.activations import activations
from archsim.trace.readers.patterns.attention import attention
from archsim.trace.readers.patterns.norms import norms
from archsim.trace.readers.patterns.products import products
from archsim.trace.readers.patterns.recurrent import recurrences
from archsim.trace.readers.patterns.rotary import rotary
from archsim.trace.readers.patterns.tidy import tidy

PATTERNS: tuple[Callable[[NodeGraph], None], ...] = (tidy, norms, activations, products, rotary, attention, recurrences)


def apply_patterns(graph: NodeGraph) -> None:
    """Let each pattern take its nodes."""
    graph.without_dead()
    for pattern in PATTERNS:
        pattern(graph)
        graph.without_dead()
