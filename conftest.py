"""Tests have constants of their own, so that a new fit of the shipped ones turns none of them red.

Where no calibration is named, tests and doctests take `tests/constants.toml` and `tests/derived.toml`. A test that is about the
shipped fit says so, `@pytest.mark.shipped_fit`, and takes that. A process that a test starts takes the shipped fit too: no test
asserts digits of what it predicts, and one that compares it with what is predicted here is marked as well.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from archsim.calibration import constants, derived

TESTS = Path(__file__).parent / "tests"
OF_THE_FIT = tuple(TESTS / name for name in ("published", "readme"))  # all of them are about the shipped fit

SHIPPED = (constants.FILE, derived.FILE)
OWN = (str(TESTS / "constants.toml"), str(TESTS / "derived.toml"))


def take(files: tuple[str, str]) -> None:
    """Read constants from these files from now on."""
    if files != (constants.FILE, derived.FILE):
        constants.FILE, derived.FILE = files
        for kept in (constants.default, derived.cores):
            kept.cache_clear()


take(OWN)  # before a file of tests is imported, which may ask for them


@pytest.hookimpl(tryfirst=True)  # before the fixtures of the module and of the session are made
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Take the constants that the test is about."""
    shipped = item.get_closest_marker("shipped_fit") or any(item.path.is_relative_to(folder) for folder in OF_THE_FIT)
    take(SHIPPED if shipped else OWN)
