"""Settings that all tests share: hypothesis draws the same examples in every run, fewer where slow tests are left out.

ARCHSIM_EXAMPLES=2000 pytest tests/laws   draws more, and others in each run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from .chromium import Browser
from .measurements import HEAD

if TYPE_CHECKING:
    from archsim.evidence.case import Case, Skip


_MANY = os.environ.get("ARCHSIM_EXAMPLES", "")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--smoke 200`: so many tests, evenly spread over all that would run."""
    parser.addoption("--smoke", type=int, default=0, metavar="N", help="run N tests, evenly spread over all that were collected")


@pytest.hookimpl(trylast=True)  # after marks have left tests out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep every so many tests of a smoke run."""
    apart = -(-len(items) // config.option.smoke) if config.option.smoke else 1
    config.hook.pytest_deselected(items=[item for i, item in enumerate(items) if i % apart])
    items[:] = items[::apart]


def pytest_configure(config: pytest.Config) -> None:
    """Draw 40 examples of each law, and 15 in the quick tier."""
    quick = "not slow" in config.option.markexpr
    settings.register_profile(
        "archsim", deadline=None, derandomize=not _MANY, max_examples=int(_MANY or (15 if quick else 40)), database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )  # fmt: skip
    settings.load_profile("archsim")


@pytest.fixture(scope="session", autouse=True)
def _read_once() -> Iterator[None]:
    """Whoever asks for the shipped measurements in this process gets what was read the first time."""
    from .readme.shell import reading_once

    with reading_once():
        yield


@pytest.fixture(scope="session")
def corpus() -> tuple[list[Case], list[Skip]]:
    """What the shipped measurements are read as, and what of them is left out. Read once: it takes a second."""
    from archsim.evidence.readers import read_files

    return read_files()


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests of pages. It starts in a second."""
    with Browser(tmp_path_factory.mktemp("browser")) as started:
        yield started


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    """`write(rows...)` makes a file of network rows, `write(text, raw=True)` one of exactly this content."""

    def make(*rows: str | bytes, raw: bool = False, name: str = "mine.csv", head: str = HEAD) -> str:
        place = tmp_path / name
        if raw:
            content = b"".join(row if isinstance(row, bytes) else row.encode() for row in rows)
        else:
            content = ("\n".join([head, *map(str, rows)]) + "\n").encode()
        place.write_bytes(content)
        return str(place)

    return make


class Pretended:
    """A measuring session that says what it took: `seconds` for each run, ten milliseconds for its first two ops."""

    stack, host, software, precision, task = "onnxruntime-cpu", "cpu", "pretended 1", "fp32", "inference"

    def __init__(self, trace: Any = None, threads: int = 1, seconds: float = 0.05) -> None:
        self.trace, self.threads, self.seconds, self.calls = trace, threads, seconds, 0

    def timed(self, times: int) -> float:
        self.calls += times
        return self.seconds * times

    def per_op(self, rounds: int) -> tuple[dict[tuple[str, ...], float], float]:
        return {(self.trace.ops[0].name, self.trace.ops[1].name): 0.01}, 0.001


@pytest.fixture
def pretended() -> type[Pretended]:
    """The class of sessions that only pretend to run."""
    return Pretended
