"""The cache simulator's loops compiled by numba, which is optional (extra `fast`) and imported only here, on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib.util import find_spec
from types import FunctionType, ModuleType
from typing import Any

from archsim.base.errors import MissingExtra
from archsim.cache import distance_kernel, inclusion, kernel

CALLEES_FIRST = {
    kernel: ("bits", "widened", "search", "promote", "remove", "touch", "victim", "serve", "set_slot"),
    inclusion: ("invalidate_above", "mark_dirty_above", "serve_stepwise"),
    distance_kernel: ("find", "insert_all", "stack_distances"),
}


def available() -> bool:
    """Whether numba is installed."""
    return find_spec("numba") is not None


@lru_cache(maxsize=1)
def compiled() -> dict[str, Callable[..., Any]]:
    """The compiled functions by name; most of the machine code is kept on disk between processes. Raises MissingExtra.

    Numba looks up the callees of a function in its globals. So each function is compiled in a copy of its module's globals, in
    which its callees are compiled already. The module itself stays as it is.
    """
    if not available():
        raise MissingExtra("a compiled cache simulation", "fast")
    import numba

    found: dict[str, Callable[..., Any]] = {}
    for module, functions in CALLEES_FIRST.items():
        names, loops = {**vars(module), "prefetch": _prefetch()}, vars(module).get("ARRAYS", {})
        names.update((name, function) for name, function in found.items() if name in names)
        kept = module is not inclusion  # its callees are in another file, whose changes numba's cache on disk does not notice
        for name in functions:
            plain = loops.get(name, getattr(module, name))
            copy = FunctionType(plain.__code__, names, name, plain.__defaults__)
            copy.__module__ = module.__name__
            found[name] = names[name] = _jitted(numba, copy, kept, "always" if name in loops else "never")
    return found


def _jitted(numba: Any, function: FunctionType, kept: bool, inline: str) -> Any:
    """A compiled function, kept on disk where there is a folder for it: that of the package, or one in the home of the user."""
    try:
        return numba.njit(function, cache=kept, inline=inline)
    except RuntimeError:  # neither can be written; it is then compiled in each process
        return numba.njit(function, inline=inline)


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
