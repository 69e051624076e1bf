"""Executors of a sweep: worker processes of this computer, or a dask cluster; parts come back in order.

A part belongs to one worker at a time. If the worker dies, another one computes the part again. A part has the same result
wherever it is computed, so a death changes no row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from archsim.base.errors import ArchsimError, MissingExtra
from archsim.study.space import Space, digest
from archsim.study.sweep import Chunk, compute

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

Parts = Callable[[Iterable[int]], Iterator[Chunk]]
PARTS_AHEAD = 3  # for each worker: finished parts that may wait for an older one
TIMEOUT_S = 10.0  # for the answer of a scheduler
MOST_DEATHS = 5  # of workers in a row without a finished part


class WorkersFailed(ArchsimError):
    """Worker processes die before they finish a part."""


@dataclass(slots=True)
class _Worker:
    process: BaseProcess
    pipe: Connection
    number: int | None = None  # the part under way


def over_processes(space: Space, numbers: Iterable[int], workers: int) -> Iterator[Chunk]:
    """The parts in order, computed by `workers` processes. Raises WorkersFailed if they keep dying."""
    from multiprocessing.connection import wait

    waiting, team = iter(numbers), [_start_worker(space) for _ in range(workers)]
    order: list[int] = []  # parts under way or done, oldest first
    done: dict[int, Chunk] = {}
    deaths = 0
    try:
        for worker in team:
            _assign_next(worker, waiting, order)
        while order:
            ready = wait([worker.pipe for worker in team])
            for i, worker in enumerate(team):
                if worker.pipe not in ready:
                    continue
                try:
                    done[worker.number or 0], deaths = _result_of(worker), 0
                except (EOFError, OSError):
                    deaths += 1
                    if deaths > MOST_DEATHS:
                        raise WorkersFailed("worker processes die before they finish anything; try fewer --workers") from None
                    team[i] = _start_worker(space)
                    _assign(team[i], worker.number)
                    continue
                worker.number = None
            while order and order[0] in done:
                yield done.pop(order.pop(0))
            for worker in team:
                if worker.number is None and len(order) < PARTS_AHEAD * workers:
                    _assign_next(worker, waiting, order)
    finally:
        for worker in team:
            worker.pipe.close()
            worker.process.terminate()
        for worker in team:
            worker.process.join()


def _start_worker(space: Space) -> _Worker:
    from multiprocessing import get_context

    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_worker_loop, args=(theirs, space), daemon=True)
    process.start()
    theirs.close()
    return _Worker(process=process, pipe=ours)


def _assign_next(worker: _Worker, waiting: Iterator[int], order: list[int]) -> None:
    number = next(waiting, None)
    if number is not None:
        order.append(number)
        _assign(worker, number)


def _assign(worker: _Worker, number: int | None) -> None:
    """Send a part to a worker. A worker that has just died is noticed when its result is read."""
    worker.number = number
    if number is not None:
        with suppress(OSError):
            worker.pipe.send(number)


def _result_of(worker: _Worker) -> Chunk:
    """The part that a worker has computed; its errors are raised here."""
    answer: Chunk | BaseException = worker.pipe.recv()
    if isinstance(answer, BaseException):
        raise answer
    return answer


def _worker_loop(pipe: Connection, space: Space) -> None:
    """A worker process: receives numbers of parts and sends back results, until the pipe is closed."""
    import signal

    keep_freed_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles an interrupt
    while True:
        try:
            number = pipe.recv()
        except (EOFError, OSError):
            return
        answer: Any
        try:
            answer = compute(space, number)
        except Exception as error:
            answer = error
        try:
            pipe.send(answer)
        except OSError:
            return


@contextmanager
def cluster(space: Space, address: str) -> Iterator[Parts]:
    """A dask scheduler that has answered: gives the parts in order, and repeats those of a dead worker.

    Raises MissingExtra without the extra `cluster`, ArchsimError where no scheduler answers, it has no workers, or one of them
    has another version, other data or other constants; so a caller knows it before it makes a file.
    """
    try:
        from distributed import Client
        from distributed.comm.addressing import parse_address, parse_host_port
    except ImportError:
        raise MissingExtra("a dask scheduler", "cluster") from None
    try:
        scheme, place = parse_address(address)
        if scheme in ("tcp", "tls"):
            parse_host_port(place)  # before a client is made: one with a bad address fails noisily when it is collected
        client = Client(address, timeout=TIMEOUT_S, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise ArchsimError(f"--scheduler {address}: no dask scheduler answers there ({error})") from None
    with client:
        threads = sum(client.nthreads().values())
        if not threads:
            raise ArchsimError(f"--scheduler {address}: the scheduler has no workers; start some with `dask worker {address}`")
        _check_same_data(client, space, address)
        yield lambda numbers: _over_client(client, space, numbers, PARTS_AHEAD * threads)


def _over_client(client: Any, space: Space, numbers: Iterable[int], ahead: int) -> Iterator[Chunk]:
    """The parts in order, `ahead` of which may be under way."""
    waiting = iter(numbers)
    under_way: list[Any] = []
    shared = client.scatter(space, broadcast=True)
    try:
        while True:
            while len(under_way) < ahead and (number := next(waiting, None)) is not None:
                under_way.append(client.submit(compute, shared, number, pure=False, retries=MOST_DEATHS))
            if not under_way:
                return
            yield under_way.pop(0).result()
    finally:
        client.cancel(under_way)


def _check_same_data(client: Any, space: Space, address: str) -> None:
    """ArchsimError unless every worker would compute the same rows as this process."""
    try:
        found = client.run(_identity, space)
    except Exception as error:  # any error of a worker's own installation
        raise ArchsimError(f"--scheduler {address}: its workers cannot compute this sweep ({error})") from None
    others = [worker for worker, identity in found.items() if identity != _identity(space)]
    if others:
        raise ArchsimError(f"--scheduler {address}: worker {others[0]} has another archsim, other data or other constants than "
                           "this computer, so its rows would differ")  # fmt: skip


def _identity(space: Space) -> str:
    """A hash of everything that decides the rows of a space in this process."""
    return digest(space.record(space.checked()))


# -------------------------------------------------------------------------------------------------- memory that is kept

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # parameters of mallopt, from malloc.h of the GNU C library
KEPT = 256 << 20  # B of freed memory that the process keeps


def keep_freed_memory() -> bool:
    """Let this process keep up to `KEPT` bytes that it has freed; returns whether the C library supports it.

    A sweep allocates and frees arrays of a quarter of a megabyte thousands of times a second. The GNU C library returns such
    memory to the system each time, and the page faults of getting it back take a third of the run time. Other C libraries are
    left alone.
    """
    import ctypes

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library, or another system
        return False
    return bool(mallopt(M_TRIM_THRESHOLD, KEPT) and mallopt(M_MMAP_THRESHOLD, KEPT))
