"""archsim predicts the time and energy that neural networks take on CPUs and GPUs.

>>> import archsim
>>> archsim.estimate(net="alexnet", hw="tegra_x1", batch=128).fits
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from archsim.base.version import __version__

__all__ = [
    "Estimate", "PowerEstimate", "__version__", "compare", "estimate", "llm", "power", "profile", "register_op", "sweep", "trace",
    "tune", "validate", "whatif",
]  # fmt: skip

if TYPE_CHECKING:
    from archsim.api import (
        Estimate,
        PowerEstimate,
        compare,
        estimate,
        llm,
        power,
        profile,
        register_op,
        sweep,
        tune,
        validate,
        whatif,
    )


def __getattr__(name: str) -> Any:
    """Load the API on first use, so that `import archsim` costs nothing."""
    if name == "trace":  # the package, which is the function too
        import importlib

        return importlib.import_module("archsim.trace")
    if name in __all__:
        import importlib

        value = getattr(importlib.import_module("archsim.api"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'archsim' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
