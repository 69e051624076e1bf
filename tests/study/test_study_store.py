"""The file of a sweep: whole parts in their order, whatever happens meanwhile."""

from __future__ import annotations

import hashlib
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest

from archsim.base.errors import InputError
from archsim.study import space as spaces
from archsim.study.axis import axis_of
from archsim.study.executors import WorkersFailed, over_processes
from archsim.study.space import Space
from archsim.study.store import Store, open_store
from archsim.study.sweep import compute, in_this_process, names, rows

from ..each import each
from ..fuzz import mutate

KILLS = 20
ROOT = Path(__file__).parents[2]


def space_of(*vary: str, nets: tuple[str, ...] = ("alexnet",), hws: tuple[str, ...] = ("gtx_1080",), **more: Any) -> Space:
    bases = tuple([{"net": net, "hw": hw} for net in nets for hw in hws])
    return Space(bases=bases, asked={}, axes=tuple([axis_of(text, "gpu") for text in vary]), **more)


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spaces, "CHUNK", 16)


def filled(path: Path, space: Space, resume: bool = False, parts: int | None = None) -> None:
    with store_of(path, space, resume) as store:
        numbers = range(space.part_at(store.count), space.parts)
        for chunk in in_this_process(space, numbers[:parts]):
            store.append(chunk)


def store_of(path: Path, space: Space, resume: bool = False) -> Any:
    return open_store(path, space, space.record(space.checked()), "gpu", resume)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.usefixtures("small_parts")
def test_parts_cover_every_point_of_every_base_once() -> None:
    space = space_of("sm.count=8:160:8", "batch=1,2", nets=("alexnet", "lstm_32"), hws=("gtx_1080", "tesla_k40"))
    parts = [space.part(number) for number in range(space.parts)]
    assert [(part.start, part.stop) for part in parts if part.base == 1] == [(40, 56), (56, 72), (72, 80)]
    assert [part.start for part in parts[1:]] == [part.stop for part in parts[:-1]]
    assert parts[-1].stop == space.count == 160
    assert [space.part_at(part.start) for part in parts] == list(range(space.parts))
    assert space.part_at(space.count) == space.parts


def test_choices_of_kernels_turn_slowest() -> None:
    space = space_of("sm.count=8,16", "batch=1,2")
    columns = space.columns(space.part(0), space.request(0))
    assert list(columns) == ["sm.count", "batch"]
    assert columns["batch"].tolist() == [1, 1, 2, 2]
    assert columns["sm.count"].tolist() == [8, 16, 8, 16]


@pytest.mark.usefixtures("small_parts")
def test_a_resumed_file_holds_the_same_bytes(tmp_path: Path) -> None:
    space = space_of("sm.count=8:160:8", "memory.bandwidth=100GB/s:1TB/s:5log")
    filled(tmp_path / "whole", space)
    for parts in (2, 1, None):
        filled(tmp_path / "resumed", space, resume=True, parts=parts)
    assert digest(tmp_path / "whole") == digest(tmp_path / "resumed")
    filled(tmp_path / "resumed", space, resume=True)  # nothing is left to do
    assert digest(tmp_path / "whole") == digest(tmp_path / "resumed")


@pytest.mark.usefixtures("small_parts")
def test_two_sweeps_into_one_file_lose_nothing(tmp_path: Path) -> None:
    space, path = space_of("sm.count=8:160:8", "batch=1,2"), tmp_path / "study.sqlite"
    filled(path, space, parts=1)
    with store_of(path, space, resume=True) as one, store_of(path, space, resume=True) as other:
        one.append(compute(space, 1))
        with pytest.raises(InputError, match="another sweep is writing"):
            other.append(compute(space, 1))
    with pytest.raises(InputError, match="is there already"), store_of(path, space):
        pass
    filled(path, space, resume=True)
    assert points(path) == list(range(space.count))


def points(path: Path) -> list[int]:
    connection = sqlite3.connect(path)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        if not connection.execute("SELECT 1 FROM sqlite_master").fetchall():
            return []  # killed before its first transaction was whole
        return [row[0] for row in connection.execute("SELECT point FROM points ORDER BY point")]
    finally:
        connection.close()


def test_what_a_kill_left_of_the_first_transaction_is_no_hindrance(tmp_path: Path) -> None:
    space, path = space_of("sm.count=8,16"), tmp_path / "study.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript("CREATE TABLE one (a); DROP TABLE one; VACUUM")
    connection.close()
    assert path.stat().st_size > 0
    filled(path, space, resume=True)
    assert points(path) == [0, 1]


def test_another_sweep_or_another_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "study.sqlite"
    filled(path, space_of("sm.count=8,16"))
    with pytest.raises(InputError, match=r"holds another sweep \(vary"), store_of(path, space_of("sm.count=8,24"), resume=True):
        pass
    path.write_text("this is no database, but it is long enough to be taken for one" * 20)
    with pytest.raises(InputError, match="is not a sweep"), store_of(path, space_of("sm.count=8,16"), resume=True):
        pass
    with pytest.raises(InputError, match="is a folder"), store_of(tmp_path, space_of("sm.count=8,16")):
        pass
    with pytest.raises(InputError, match="no folder"), store_of(tmp_path / "no" / "x", space_of("sm.count=8,16")):
        pass


@pytest.mark.usefixtures("small_parts")
def test_a_full_disk_keeps_what_is_there(tmp_path: Path) -> None:
    space, path = space_of("sm.count=8:160:8", "memory.bandwidth=100GB/s:1TB/s:20log"), tmp_path / "study.sqlite"
    with store_of(path, space) as store:
        store.append(compute(space, 0))
        limit_pages(store)
        with pytest.raises(InputError, match=r"the disk is full; .* points are safe in it; --resume goes on"):
            append_all(store, space)
        there = store.count
    assert points(path) == list(range(there))
    filled(path, space, resume=True)
    assert points(path) == list(range(space.count))


def append_all(store: Store, space: Space) -> None:
    for chunk in in_this_process(space, range(1, space.parts)):
        store.append(chunk)


def limit_pages(store: Store) -> None:
    """Room for what is there and a few pages."""
    (pages,) = store._connection.execute("PRAGMA page_count").fetchone()
    store._connection.execute(f"PRAGMA max_page_count = {pages + 2}")


def test_a_file_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root writes everywhere")
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="cannot be opened for writing"), store_of(tmp_path / "x", space_of("sm.count=8,16")):
        pass
    tmp_path.chmod(0o700)


# ---------------------------------------------------------------------------------------------- processes that die


def words(out: Path, *more: str) -> list[str]:
    return [sys.executable, "-c", "import sys; from archsim.study import space; space.CHUNK = 64; "
            "from archsim.cli.main import main; sys.argv[0] = 'archsim'; main()", "sweep", "--net", "lstm_32", "--hw", "gtx_1080",
            "--vary", "sm.count=8:160:2", "--vary", "memory.bandwidth=100GB/s:1TB/s:40log", "--out", str(out), *more]  # fmt: skip


def swept(out: Path, *more: str, kill_after: float | None = None) -> int:
    process = subprocess.Popen(words(out, *more), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        if kill_after is not None:
            wait_for_a_part(out)
            time.sleep(kill_after)
            process.send_signal(signal.SIGKILL)
        process.communicate(timeout=120)
    finally:
        process.kill()
    return process.returncode


def wait_for_a_part(out: Path) -> None:
    """Until the process has opened the file and can be hit while it writes."""
    before = out.stat().st_mtime_ns if out.exists() else 0
    for _ in range(2000):
        if out.exists() and out.stat().st_mtime_ns != before:
            return
        time.sleep(0.005)


@pytest.mark.slow
def test_twenty_kills_leave_the_bytes_of_an_undisturbed_sweep(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole.sqlite", tmp_path / "killed.sqlite"
    assert swept(whole) == 0
    draw, counts = Random(1), []
    for _ in range(KILLS):
        swept(killed, "--resume", kill_after=draw.uniform(0.0, 0.012))
        counts.append(len(points(killed)))
    assert counts == sorted(counts)
    assert len(set(counts)) > KILLS // 5, "the kills came when nothing was under way"
    assert swept(killed, "--resume") == 0
    assert points(killed) == list(range(77 * 40))
    assert digest(whole) == digest(killed)


@pytest.mark.shipped_fit  # which the processes take
@pytest.mark.slow
def test_processes_give_the_same_bytes_even_if_one_is_killed(tmp_path: Path) -> None:
    space = space_of("sm.count=1:120:1", "memory.bandwidth=100GB/s:1TB/s:100log", nets=("lstm_32",))
    assert space.parts > 2
    filled(tmp_path / "one", space)
    with store_of(tmp_path / "two", space) as store:
        killed = False
        for chunk in over_processes(space, range(space.parts), 2):
            store.append(chunk)
            if not killed:
                killed = kill_a_worker()
    assert killed
    assert digest(tmp_path / "one") == digest(tmp_path / "two")


def kill_a_worker() -> bool:
    import multiprocessing

    workers = multiprocessing.active_children()
    if workers:
        workers[0].kill()
    return bool(workers)


@pytest.mark.slow
def test_workers_that_cannot_live_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archsim.study.executors._worker_loop", leave)
    monkeypatch.setattr("archsim.study.executors.MOST_DEATHS", 1)
    with pytest.raises(WorkersFailed, match="fewer --workers"):
        list(over_processes(space_of("sm.count=8,16"), range(1), 1))


def leave(*_: Any) -> None:
    os._exit(1)


HOSTILE: list[str] = mutate.VALUES["store"]


@each("statement", HOSTILE)
def test_what_a_stranger_wrote_into_a_sweep_is_refused(tmp_path: Path, statement: str) -> None:
    path, space = tmp_path / "study.sqlite", space_of("sm.count=8,16", "precision=fp32,int8")
    path.unlink(missing_ok=True)
    filled(path, space)
    filled(path, space, resume=True)  # impossible points and all, as archsim wrote it
    connection = sqlite3.connect(path)
    connection.executescript(statement)
    connection.commit()
    connection.close()
    with pytest.raises(InputError, match="is not a sweep of archsim"), store_of(path, space, resume=True):
        pass


def test_rows_of_other_points_are_refused_even_with_a_digest_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, space = tmp_path / "study.sqlite", space_of("sm.count=8,16")
    for change in ({"sm.count": 9.0}, {"hardware": "other"}, {"hardware_name": "other"}, {"latency_s": None}, {"point": 7}):

        def changed(chunk: Any, of: Space, change: dict[str, Any] = change) -> list[tuple[Any, ...]]:
            first, *others = rows(chunk, of)
            return [tuple({**dict(zip(names(of, "gpu"), first, strict=True)), **change}.values()), *others]

        path.unlink(missing_ok=True)
        with monkeypatch.context() as patched:
            patched.setattr("archsim.study.store.rows", changed)
            filled(path, space)
        with pytest.raises(InputError, match="points 0 to 1 are not as it wrote them"), store_of(path, space, resume=True):
            pass


@pytest.mark.usefixtures("small_parts")
@each("seed", range(150))
def test_a_damaged_file_is_refused_or_ends_in_the_same_rows(tmp_path: Path, seed: int) -> None:
    space, random = space_of("sm.count=8:160:8", "precision=fp32,int8"), Random(seed)
    sound, damaged = tmp_path / "sound", tmp_path / "damaged"
    if not sound.exists():
        filled(sound, space, parts=2)
        filled(tmp_path / "whole", space)
    data = bytearray(sound.read_bytes())
    kind, at = random.randrange(3), random.randrange(len(data))
    for _ in range(random.choice((1, 5, 50)) if kind == 0 else 0):
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    damaged.write_bytes(data[:at] if kind == 1 else data[:at] + random.randbytes(40) + data[at + 40 :] if kind == 2 else data)
    try:
        filled(damaged, space, resume=True)
    except InputError:
        return
    assert all_rows(damaged) == all_rows(tmp_path / "whole")


def all_rows(path: Path) -> list[tuple[Any, ...]]:
    with sqlite3.connect(path) as connection:
        found = connection.execute("SELECT * FROM points ORDER BY point").fetchall()
    connection.close()
    return found


def test_pages_that_are_used_and_said_to_be_free_are_noticed(tmp_path: Path) -> None:
    path, space = tmp_path / "study.sqlite", space_of("sm.count=8,16")
    filled(path, space)
    data = bytearray(path.read_bytes())
    data[32:40] = bytes([0, 0, 0, 3, 0, 0, 0, 1])  # first page and count of the free list (SQLite's file format, 1.3)
    path.write_bytes(data)
    with pytest.raises(InputError, match="it is damaged"), store_of(path, space, resume=True):
        pass


def test_another_numpy_is_recorded_and_goes_on(tmp_path: Path) -> None:
    path, space = tmp_path / "study.sqlite", space_of("sm.count=8,16")
    filled(path, space)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE study SET value = '\"1.26.0\"' WHERE key = 'numpy'")
    connection.close()
    with store_of(path, space, resume=True) as store:
        assert store.about()["numpy"] == "1.26.0"
