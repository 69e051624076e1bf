"""Workers: the parts of a sweep computed by several processes of this machine, or by a dask cluster, and put in order.

A part belongs to one worker at a time. If that worker dies, the part goes to another one, so that nothing is lost; since a part
gives the same numbers wherever it is computed, nobody sees the difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from archsim.base.errors import ArchsimError, MissingExtra
from archsim.study.allocator import keep_freed_memory
from archsim.study.space import Space, digest
from archsim.study.sweep import Chunk, compute

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

AHEAD = 3  # parts that may wait for the oldest one, for each worker
PATIENCE = 10.0  # s to wait for a scheduler
DEATHS = 5  # of workers in a row, without a part that came back


class WorkersDie(ArchsimError):
    """No worker lives long enough to compute a part."""


@dataclass(slots=True)
class _Worker:
    process: BaseProcess
    pipe: Connection
    number: int | None = None  # the part that it computes


def over_processes(space: Space, numbers: Iterable[int], workers: int) -> Iterator[Chunk]:
    """The parts in order, computed by so many processes. Raises WorkersDie if they do."""
    from multiprocessing.connection import wait

    waiting, crew = iter(numbers), [_hired(space) for _ in range(workers)]
    order: list[int] = []  # parts that are under way or done, oldest first
    done: dict[int, Chunk] = {}
    deaths = 0
    try:
        for worker in crew:
            _give(worker, waiting, order)
        while order:
            ready = wait([worker.pipe for worker in crew])
            for i, worker in enumerate(crew):
                if worker.pipe not in ready:
                    continue
                try:
                    done[worker.number or 0], deaths = _taken(worker), 0
                except (EOFError, OSError):
                    deaths += 1
                    if deaths > DEATHS:
                        raise WorkersDie("worker processes end before they have computed anything; try fewer --workers") from None
                    crew[i] = _hired(space)
                    _repeat(crew[i], worker.number)
                    continue
                worker.number = None
            while order and order[0] in done:
                yield done.pop(order.pop(0))
            for worker in crew:
                if worker.number is None and len(order) < AHEAD * workers:
                    _give(worker, waiting, order)
    finally:
        for worker in crew:
            worker.pipe.close()
            worker.process.terminate()
        for worker in crew:
            worker.process.join()


def _hired(space: Space) -> _Worker:
    from multiprocessing import get_context

    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, space), daemon=True)
    process.start()
    theirs.close()
    return _Worker(process=process, pipe=ours)


def _give(worker: _Worker, waiting: Iterator[int], order: list[int]) -> None:
    number = next(waiting, None)
    if number is not None:
        order.append(number)
        _repeat(worker, number)


def _repeat(worker: _Worker, number: int | None) -> None:
    """Hand a part to a worker. That it has just died is noticed when its answer is read."""
    worker.number = number
    if number is not None:
        with suppress(OSError):
            worker.pipe.send(number)


def _taken(worker: _Worker) -> Chunk:
    """The part that a worker has computed; its errors are raised here."""
    answer: Chunk | BaseException = worker.pipe.recv()
    if isinstance(answer, BaseException):
        raise answer
    return answer


def _work(pipe: Connection, space: Space) -> None:
    """A worker process: parts come in by number and go out computed, until nobody is at the other end."""
    import signal

    keep_freed_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the process that gives out the work
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


def over_cluster(space: Space, numbers: Iterable[int], address: str) -> Iterator[Chunk]:
    """The parts in order, computed by the workers of a dask scheduler. Dask gives the parts of a dead worker to another one.

    Raises MissingExtra without the extra `cluster`, ArchsimError where no scheduler answers, no worker is there, or one has
    another archsim, other data or other constants, whose rows would be others.
    """
    try:
        from distributed import Client
        from distributed.comm.addressing import parse_address, parse_host_port
    except ImportError:
        raise MissingExtra("a dask scheduler", "cluster") from None
    try:
        scheme, place = parse_address(address)
        if scheme in ("tcp", "tls"):
            parse_host_port(place)  # a client that never was complains when it is cleared away
        client = Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise ArchsimError(f"--scheduler {address}: no dask scheduler answers there ({error})") from None
    with client:
        threads = sum(client.nthreads().values())
        if not threads:
            raise ArchsimError(f"--scheduler {address}: the scheduler has no workers; start some with `dask worker {address}`")
        _check_alike(client, space, address)
        waiting = iter(numbers)
        under_way: list[Any] = []
        shared = client.scatter(space, broadcast=True)
        try:
            while True:
                while len(under_way) < AHEAD * threads and (number := next(waiting, None)) is not None:
                    under_way.append(client.submit(compute, shared, number, pure=False, retries=DEATHS))
                if not under_way:
                    return
                yield under_way.pop(0).result()
        finally:
            client.cancel(under_way)


def _check_alike(client: Any, space: Space, address: str) -> None:
    """ArchsimError unless every worker would compute what this process would."""
    try:
        found = client.run(_identity, space)
    except Exception as error:  # whatever a worker's own installation says
        raise ArchsimError(f"--scheduler {address}: its workers cannot compute this sweep ({error})") from None
    others = [worker for worker, identity in found.items() if identity != _identity(space)]
    if others:
        raise ArchsimError(f"--scheduler {address}: worker {others[0]} has another archsim, other data or other constants than "
                           "this machine; its rows would be others")  # fmt: skip


def _identity(space: Space) -> str:
    """A hash of all that decides the rows of a space where this is called."""
    return digest(space.record(space.checked()))
