"""Settings that all tests share: hypothesis draws the same examples in every run.

ARCHSIM_EXAMPLES=2000 pytest tests/laws   draws more, and others in each run.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_MANY = os.environ.get("ARCHSIM_EXAMPLES", "")
settings.register_profile(
    "archsim", deadline=None, derandomize=not _MANY, max_examples=int(_MANY or 40), database=None,
    suppress_health_check=[HealthCheck.too_slow],
)  # fmt: skip
settings.load_profile("archsim")
