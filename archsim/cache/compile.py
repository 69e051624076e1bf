"""The cache simulator's loops compiled by numba, which is optional (extra `fast`) and imported only here, on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import ModuleType
from typing import Any

from archsim.base import machine_code
from archsim.base.machine_code import available, compiled_modules, digest
from archsim.cache import distance_kernel, inclusion, kernel

CALLEES_FIRST = {
    kernel: ("bits", "widened", *kernel.ARRAYS, "remove", "touch", "victim", "set_slot", "set_slots", "serve"),
    inclusion: ("invalidate_above", "mark_dirty_above", "serve_stepwise"),
    distance_kernel: ("find", "insert_all", "stack_distances"),
}
SEPARATE = {name for functions in CALLEES_FIRST.values() for name in functions} - {"serve", *kernel.ARRAYS}


@lru_cache(maxsize=1)
def compiled() -> dict[str, Callable[..., Any]]:
    """The compiled functions by name. Raises MissingExtra."""
    what, version = "a compiled cache simulation", digest(machine_code, *CALLEES_FIRST)
    instead = {**kernel.ARRAYS, "prefetch": _prefetch()} if available() else None
    return compiled_modules(CALLEES_FIRST, SEPARATE, version, what, instead)


def _prefetch() -> Any:
    """`kernel.prefetch` as machine code: one prefetch instruction for each line of 64 B of `count` elements from `first` on."""
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    @intrinsic  # type: ignore[untyped-decorator]
    def prefetch(typing: Any, array: Any, first: Any, count: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, values[0]).data
            byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
            function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
            step = values[1].type(8)
            with cgutils.for_range_slice(builder, values[1].type(0), values[2], step) as (offset, _):
                place = builder.gep(data, [builder.add(values[1], offset)])
                builder.call(function, [builder.bitcast(place, byte), *(number(flag) for flag in (1, 3, 1))])
            return context.get_dummy_value()

        return types.void(array, first, count), code

    return prefetch


def functions_of(module: ModuleType, fast: bool) -> Mapping[str, Callable[..., Any]]:
    """The functions of a module by name, plain or compiled."""
    return compiled() if fast else vars(module)
