"""Activations rounded to one byte before a product on tensor cores, by software that keeps them wider."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from archsim.lower.columns import GpuColumns, TileColumns
from archsim.lower.context import Context, element_wise
from archsim.lower.kernel import Kernel
from archsim.lower.role import Role
from archsim.stack.passes import Passes


def quantised(context: Context, tokens: float, features: float, how: str = "quantise") -> tuple[Kernel, ...]:
    """The kernels that round activations to one byte before a product on tensor cores, where the stack keeps them wider.

    `how` is the row of `passes` that says what they move; without that row the values are taken to be in one byte already. Where
    it says `row_threads`, each token is a CTA's: of several kernels the last rounds, those before it find the largest value.
    Where it says `grid`, the first one finds the largest of all.
    """
    if context.element > 1 or not context.tensor or how not in context.stack.passes:
        return ()
    passes, values = context.passes(how, "forward"), tokens * features
    each = passes.inputs * values * context.result / passes.launches
    writes = passes.outputs * values * context.element
    if passes.row_threads:
        last = passes.launches - 1
        return tuple([
            _by_row(context, passes, tokens, features, each, writes if i == last else 0.0, float(i < passes.row_updates))
            for i in range(passes.launches)
        ])  # fmt: skip
    found = (_by_grid(context, passes, values),) if passes.grid else ()
    others = passes.launches - len(found)
    reads = passes.inputs * values * context.result - sum(kernel.b_bytes for kernel in found)
    return (*found, element_wise("quantise", Role.QUANTISE, reads / others, writes / others, flop=values / others,
                                 element=context.vector, repeat=others))  # fmt: skip


def _by_grid(context: Context, passes: Passes, values: float) -> Kernel:
    """The largest of all values, found by a fixed number of CTAs, each of which ends with an atomic update of one address."""
    kernel = element_wise("largest", Role.QUANTISE, values * context.result, 0.0, flop=values, element=context.vector)
    return replace(kernel, items=float(passes.grid * passes.grid_threads),
                   gpu=GpuColumns(row_count=float(passes.grid), updates=float(passes.grid)),
                   cta=TileColumns(threads=float(passes.grid_threads)))  # fmt: skip


def _by_row(
    context: Context, passes: Passes, rows: float, length: float, reads: float, writes: float, update: float
) -> Kernel:  # fmt: skip
    """One kernel with a CTA for each of its rows of `length` values, whose threads load what they store 16 B of at once.

    A CTA has a thread for each load, within what `passes` says. Where it comes back to its row, it finds it in the caches as far
    as these keep the rows of all CTAs. `update`: 1 where it ends with an atomic update of one address.
    """
    size, load = length * context.result, context.vector * context.result / context.element
    threads = max(float(passes.row_least), min(float(passes.row_threads), ceil(size / load)))
    visits = reads / (rows * size)
    gpu = GpuColumns(row=length, row_count=rows, row_piece=length, row_reads=visits, updates=update * rows,
                     row_in_flight=size / threads * (visits > 1.0))  # fmt: skip
    kernel = element_wise("quantise" if writes else "largest", Role.QUANTISE, reads, writes, flop=rows * length, element=load)
    return replace(kernel, items=rows * threads, operand_a=context.result, gpu=gpu,
                   cta=TileColumns(threads=threads))  # fmt: skip
