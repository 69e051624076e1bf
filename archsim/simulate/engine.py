"""An engine with continuous batching, as a process of simpy: requests wait, are read, and get a token with every step.

Where the engine cuts prompts, a step holds a token of each running request and as much of the waiting prompts as its budget
leaves (Agrawal et al. 2024); otherwise whole prompts come first. The cache is paged: a request that finds no free block is put
back, and read again with what it had answered (Kwon et al. 2023, section 4.5).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING, Any

from archsim.base.record import kept
from archsim.generation.memory import blocks, cache_of, memory_of, room
from archsim.generation.plan import ServingPlan
from archsim.generation.step import NOTHING, StepCost, step_cost, step_tokens

if TYPE_CHECKING:
    from simpy import Environment

NEAR = 16  # tokens of context by which costs of steps are told apart
SIZES = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 4096)  # sequences that are priced


@dataclass(slots=True, kw_only=True, eq=False)  # two are never the same, however alike
class Conversation:
    """A request on its way: its lengths, tokens read and answered, its part of the cache `held` [B], when its tokens came [s]."""

    arrival_s: float
    input: int
    output: int
    read: int = 0  # tokens in the cache
    answered: int = 0
    preempted: int = 0
    held: float = 0.0
    token_s: list[float] = field(default_factory=list)

    @property
    def to_read(self) -> int:
        """Tokens that have to be read before the next one is made: the prompt, and what was answered before it was put back.

        0 while it generates: of all its tokens only the last one is not in the cache, which the next step reads.
        """
        total = self.input + self.answered
        return 0 if self.answered and self.read == total - 1 else total


def decode_cost(plan: ServingPlan, sequences: int, context: float) -> StepCost:
    """A step of one token for each of `sequences` with `context` tokens on average."""
    return _decoded(plan, sequences, max(1, round(context / NEAR) * NEAR))


@kept(65536)
def _decoded(plan: ServingPlan, sequences: int, near: int) -> StepCost:
    contexts = _powers(plan, near)
    return _between(sequences, SIZES, lambda n: _between(near, contexts, lambda context: _at(plan, n, 1, context, True)))


def read_cost(plan: ServingPlan, tokens: float, context: float, parts: int = 1) -> StepCost:
    """A step that reads `tokens` in `parts` of as many prompts, each up to `context` of it."""
    parts = max(parts, ceil(tokens / plan.model.context))
    each = tokens / parts
    share = min(1.0, each / context)
    return _between(each, _powers(plan, each), lambda t: _at(plan, parts, t, max(t, round(t / share)), False))


def mixed_cost(plan: ServingPlan, sequences: int, context: float, tokens: int, end: float, parts: int = 1) -> StepCost:
    """A step that does both, which is never shorter than either.

    t = t_read(tokens + sequences) + max(0, t_decode(sequences) - t_read(sequences))

    The products of all tokens are one; what decoding adds to them is attention to the cache, scores of words and the host's
    work for each sequence, which reading as many tokens of one prompt does not have.
    """
    decode = decode_cost(plan, sequences, context) if sequences else NOTHING
    read = read_cost(plan, tokens, end, parts) if tokens else NOTHING
    if not (tokens and sequences):
        return decode if sequences else read
    added = decode.plus(read_cost(plan, sequences, sequences), -1.0)
    together = read_cost(plan, tokens + sequences, end + sequences / parts, parts)
    both = together.plus(added) if added.time_s > 0.0 else together
    return max(both, decode, read, key=lambda step: step.time_s)


def _at(plan: ServingPlan, sequences: int, tokens: int, context: int, decode: bool) -> StepCost:
    return step_cost(plan, sequences, tokens, min(max(context, tokens), plan.model.context), decode=decode)


def _powers(plan: ServingPlan, value: float) -> tuple[int, ...]:
    """The powers of two around a number of tokens, of which the model takes no more than its context."""
    low = 1 << max(0, int(value).bit_length() - 1)
    return (low, min(2 * low, max(low, plan.model.context)))


def _between(value: float, grid: tuple[int, ...], of: Callable[[int], StepCost]) -> StepCost:
    """A cost between those of two neighbours of a grid."""
    high = next((size for size in grid if size >= value), grid[-1])
    if high <= value or high == grid[0]:
        return of(high)
    low = max(size for size in grid if size < high)
    share = (value - low) / (high - low)
    first = of(low)
    return first.plus(of(high), share).plus(first, -share)


class ServingEngineProcess:
    """One server: its queue, what runs on it, the blocks of its cache, and what it has spent.

    finished: called with a request that has all its tokens, or on a server that only reads with its first one
    """

    def __init__(
        self, env: Environment, plan: ServingPlan, finished: Callable[[Conversation], None], *, only_reads: bool = False
    ) -> None:
        self.env, self.plan, self.finished, self.only_reads = env, plan, finished, only_reads
        self.engine = plan.stack.serving
        self.waiting: deque[Conversation] = deque()
        self.running: list[Conversation] = []
        self.free = cache_room(plan)
        self.spent = NOTHING
        self.steps = self.most_running = 0
        self._woken: Any = env.event()
        env.process(self._run())

    def put(self, request: Conversation) -> None:
        """A request joins the queue."""
        self.waiting.append(request)
        self._wake()

    def _wake(self) -> None:
        if not self._woken.triggered:
            self._woken.succeed()

    def adopt(self, request: Conversation) -> None:
        """A request joins whose prompt another server has read; if its cache does not fit, it is read again here."""
        if len(self.running) < self.engine.sequences and self._reserve(request, request.read + 1):
            self.running.append(request)
            return self._wake()
        request.read = 0
        return self.put(request)

    def _run(self) -> Generator[Any, Any, None]:
        while True:
            if not self.waiting and not self.running:
                self._woken = self.env.event()
                yield self._woken
            cost, reads, decoding = self._step()
            self.steps += 1
            self.spent = self.spent.plus(cost)
            yield self.env.timeout(cost.time_s)
            self._done(reads, decoding)

    def _step(self) -> tuple[StepCost, list[tuple[Conversation, int]], list[Conversation]]:
        """What the next step does: parts of prompts, and the requests that get a token."""
        decoding = [one for one in self.running if not one.to_read]
        left = step_tokens(self.plan, self.plan.model.context) - len(decoding) * self.engine.cuts_prompts
        reads: list[tuple[Conversation, int]] = []

        def read(one: Conversation, most: int) -> int:
            if (count := min(most, one.to_read - one.read)) > 0:
                reads.append((one, count))
            return max(count, 0)

        for one in [one for one in self.running if one.to_read]:
            left -= read(one, left)
        while self.waiting and len(self.running) < self.engine.sequences:
            one = self.waiting[0]
            whole = one.input + one.answered
            if left <= 0 or (not self.engine.cuts_prompts and whole > left and reads) or not self._reserve(one, whole):
                break
            self.waiting.popleft()
            self.running.append(one)
            left -= read(one, left if self.engine.cuts_prompts else max(left, whole))
        self.most_running = max(self.most_running, len(self.running))
        together = decoding if self.engine.cuts_prompts or not reads else []
        for one in list(together):
            while one in self.running and not self._reserve(one, one.read + 1):
                self._put_back(self.running[-1])
        together = [one for one in together if one in self.running]
        reads = [(one, tokens) for one, tokens in reads if one in self.running]
        tokens, end = sum(count for _, count in reads), sum(one.read + count for one, count in reads) / max(1, len(reads))
        context = sum(one.read + 1 for one in together) / len(together) if together else 0.0
        if not tokens and not together:
            raise RuntimeError("a step without work")
        return mixed_cost(self.plan, len(together), context, tokens, max(1.0, end), max(1, len(reads))), reads, together

    def _reserve(self, one: Conversation, tokens: int) -> bool:
        """Blocks for so many tokens of a request, if they are free."""
        need = max(0.0, cache_of(self.plan, tokens) - one.held)
        if need > self.free:
            return False
        self.free -= need
        one.held += need
        return True

    def _put_back(self, one: Conversation) -> None:
        """The request that came last gives its blocks back and waits in front."""
        self.running.remove(one)
        self._release(one)
        one.read, one.preempted = 0, one.preempted + 1
        self.waiting.appendleft(one)

    def _release(self, one: Conversation) -> None:
        self.free += one.held
        one.held = 0.0

    def _done(self, reads: list[tuple[Conversation, int]], decoding: list[Conversation]) -> None:
        """Tokens of a step that has ended."""
        for one, count in reads:
            one.read += count
            if one.read >= one.input + one.answered:
                self._token(one)
        for one in decoding:
            one.read += 1
            self._token(one)

    def _token(self, one: Conversation) -> None:
        one.answered += 1
        one.token_s.append(float(self.env.now))
        if one.answered >= one.output or self.only_reads:
            self.running.remove(one)
            self._release(one)
            self.finished(one)


def cache_room(plan: ServingPlan) -> float:
    """What the fullest device has for keys and values beside all else [B]."""
    fixed = memory_of(plan, 1, 1)
    return max(0.0, room(plan) - (fixed.total - fixed.kv_cache))


def cache_tokens(plan: ServingPlan) -> int:
    """Tokens that fit the cache, in whole blocks, of sequences as long as the model takes."""
    block = plan.stack.serving.block
    longest = blocks(plan.model.context, block)
    return int(cache_room(plan) // (cache_of(plan, longest) / longest * block)) * block
