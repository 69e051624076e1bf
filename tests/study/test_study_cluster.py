"""A dask cluster gives the bytes of one process, whatever dies. Skipped where `distributed` is not installed."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from archsim.base.errors import ArchsimError, MissingExtra
from archsim.study import executors
from archsim.study.axis import axis_of
from archsim.study.space import Space
from archsim.study.store import open_store
from archsim.study.sweep import in_this_process

ROOT = Path(__file__).parents[2]
AXES = ("sm.count=1:120:1", "memory.bandwidth=100GB/s:1TB/s:200log")


def space() -> Space:
    return Space(bases=({"net": "lstm_32", "hw": "gtx_1080"},), axes=tuple([axis_of(text, "gpu") for text in AXES]))


def begin(whole: Space, address: str) -> None:
    """Ask a scheduler, and compute nothing."""
    with executors.cluster(whole, address):
        pass


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """The address of a scheduler with two workers, and the processes of these."""
    pytest.importorskip("distributed")
    place = tmp_path / "scheduler.json"
    common = {"cwd": ROOT, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
    started = [subprocess.Popen([sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard",
                                 "--scheduler-file", str(place)], **common)]  # type: ignore[call-overload]  # fmt: skip
    workers = []
    try:
        for _ in range(2):
            words = [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(place), "--nthreads", "1",
                     "--no-nanny", "--no-dashboard", "--local-directory", str(tmp_path)]  # fmt: skip
            workers.append(subprocess.Popen(words, **common))  # type: ignore[call-overload]
        yield wait_for(place, 2), workers
    finally:
        for process in (*workers, *started):
            process.kill()
            process.wait()


def wait_for(place: Path, workers: int) -> str:
    """The address in a scheduler's file, once it has so many workers."""
    from distributed import Client

    for _ in range(300):
        if place.exists() and place.stat().st_size:
            with Client(scheduler_file=str(place), set_as_default=False) as client:
                client.wait_for_workers(workers, timeout=60)
                return str(client.scheduler.address)
        time.sleep(0.1)
    raise AssertionError("no scheduler")


@pytest.mark.shipped_fit  # which the workers take
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_whose_worker_is_killed_gives_the_same_bytes(
    scheduler: tuple[str, list[subprocess.Popen[bytes]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, workers = scheduler
    whole = space()
    with monkeypatch.context() as patch:
        patch.setattr(executors, "digest", lambda _: "that of another version")  # in this process alone
        with pytest.raises(ArchsimError, match="has another archsim, other data or other constants"):
            begin(whole, address)
    record = whole.record(whole.checked())
    with open_store(tmp_path / "one", whole, record, "gpu", False) as store:
        for chunk in in_this_process(whole, range(whole.parts)):
            store.append(chunk)
    with (
        executors.cluster(whole, address) as parts,
        open_store(tmp_path / "two", whole, record, "gpu", False) as store,
    ):
        for i, chunk in enumerate(parts(range(whole.parts))):
            store.append(chunk)
            if i == 0:
                os.kill(workers[0].pid, signal.SIGKILL)
    assert store.count == whole.count
    assert digest(tmp_path / "one") == digest(tmp_path / "two")


@pytest.mark.filterwarnings("ignore")
def test_a_scheduler_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(executors, "TIMEOUT_S", 0.5)
    with pytest.raises(ArchsimError, match=r"no dask scheduler answers there"):
        begin(space(), "tcp://127.0.0.1:9")
    with pytest.raises(ArchsimError, match=r"missing port"):
        begin(space(), "nobody")


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtra, match=r"archsim\[cluster\]"):
        begin(space(), "tcp://127.0.0.1:9")
