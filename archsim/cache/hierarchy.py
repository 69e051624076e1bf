"""What a cache hierarchy is: its levels from the cores to memory, checked once; and the hierarchy of a device."""

from __future__ import annotations

from dataclasses import dataclass

from archsim.base.errors import Unsupported
from archsim.cache.kernel import BITS, FIFO, LRU, RANDOM, SRRIP, TREE
from archsim.device.device import Cpu, Device, Gpu

POLICIES = {"lru": LRU, "fifo": FIFO, "random": RANDOM, "tree-plru": TREE, "bit-plru": BITS, "srrip": SRRIP}
HOLDS = ("any", "inclusive", "exclusive")
WRITES = ("back", "through")
MOST_SECTORS = 16  # of a line; the masks of a hierarchy are small integers
MOST_LINES = 1 << 24  # in all levels together, 1 GiB of lines of 64 B: each takes two or three numbers of the simulation
GPU_WAYS = 16  # of an L2 whose spec does not say: what Mei and Chu (2017) and Jia et al. (2018) find between 16 and 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One level: `size`, `line` and `sector` [B]; `cores` share one instance of it.

    `sector` is what moves between levels, a whole line if 0. `holds` says what it has of the level above: everything
    (inclusive: what it drops is dropped above), nothing (exclusive: it takes what the level above drops, and gives up what it
    is asked for), or what happens to be there. `fetch`: a write that misses fetches the line first. `writes_touch`: a write
    that hits counts as a use. `hashed`: higher bits of the line's number are folded into its set.

    Raises ValueError with every problem.
    """

    name: str
    size: int
    ways: int
    line: int = 64
    sector: int = 0
    policy: str = "lru"
    write: str = "back"
    allocate: bool = True
    fetch: bool = True
    writes_touch: bool = True
    holds: str = "any"
    hashed: bool = False
    cores: int = 1

    def __post_init__(self) -> None:
        problems = list(_problems(self))
        if problems:
            raise ValueError(f"{self.name}: {'; '.join(problems)}")

    @property
    def sets(self) -> int:
        """Sets of one instance; any whole number, as the set is the remainder of the line's number."""
        return self.size // (self.line * self.ways)

    @property
    def lines(self) -> int:
        """Lines of one instance."""
        return self.size // self.line


def _problems(level: Level) -> list[str]:
    found = [f"{name} is {getattr(level, name)}, must be at least 1" for name in ("size", "ways", "line", "cores")
             if getattr(level, name) < 1]  # fmt: skip
    for name, value, known in (("policy", level.policy, list(POLICIES)), ("write", level.write, WRITES),
                               ("holds", level.holds, HOLDS)):  # fmt: skip
        if value not in known:
            found.append(f"{name} {value!r} is not one of {', '.join(known)}")
    if found:
        return found
    if level.line & (level.line - 1):
        found.append(f"line of {level.line} B is not a power of two")
    if level.size % (level.line * level.ways):
        nearest = max(1, round(level.size / (level.line * level.ways))) * level.line * level.ways
        found.append(f"size of {level.size} B is not a multiple of line x ways = {level.line * level.ways} B; nearest: {nearest}")
    if level.sector and (level.line % level.sector or level.line // level.sector > MOST_SECTORS):
        found.append(f"sector of {level.sector} B does not divide the line of {level.line} B into at most {MOST_SECTORS}")
    if level.policy == "tree-plru" and (level.ways & (level.ways - 1) or level.ways > 32):
        found.append(f"tree-plru halves the ways again and again: {level.ways} is not a power of two up to 32")
    if level.holds == "exclusive" and (level.write != "back" or not level.allocate):
        found.append("an exclusive level takes the victims of the one above, so it must write back and allocate")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchy:
    """Levels from the cores (first) to memory (last), for `cores` cores. Raises ValueError where they do not fit together.

    There is no coherence between cores: private copies of a line that another core writes stay as they are.
    """

    levels: tuple[Level, ...]
    cores: int = 1
    assumed: tuple[str, ...] = ()  # what the spec of a device does not say, in words

    def __post_init__(self) -> None:
        if not self.levels:
            raise ValueError("a hierarchy needs at least one level")
        first = self.levels[0]
        if first.holds == "exclusive":
            raise ValueError(f"{first.name}: the first level has none above to be exclusive of")
        for above, below in zip(self.levels, self.levels[1:], strict=False):
            if above.line != below.line:
                raise ValueError(f"{below.name}: its line of {below.line} B is not that of {above.name}, {above.line} B")
            if below.cores % above.cores:
                raise ValueError(f"{below.name}: {below.cores} cores share it, no multiple of the {above.cores} of {above.name}")
            if below.holds == "exclusive" and above.write == "through":
                raise ValueError(f"{below.name}: exclusive below {above.name}, which writes through and so never drops data")
        lines = sum(level.lines * self.instances(i) for i, level in enumerate(self.levels))
        if lines > MOST_LINES:
            raise ValueError(f"{lines} lines in all levels; at most {MOST_LINES} can be simulated")

    def instances(self, level: int) -> int:
        """How many of a level there are."""
        return -(-self.cores // self.levels[level].cores)

    @property
    def line(self) -> int:
        """The line [B], the same in all levels."""
        return self.levels[0].line

    @property
    def sector(self) -> int:
        """The smallest sector of any level [B], of which a bit of a mask stands for one."""
        return min(level.sector or level.line for level in self.levels)

    @property
    def one_way(self) -> bool:
        """Whether no level changes one above, so that each can work through many requests before the next does."""
        return all(level.holds == "any" for level in self.levels)


def hierarchy_of(device: Device, cores: int = 1, policy: str = "lru") -> Hierarchy:
    """The caches of a device as `cores` of its cores (CPU) or multiprocessors (GPU) see them.

    Of a CPU, private L1 and L2 and a last level that those share which the spec says; all write back. Of a GPU, the L1 of each
    multiprocessor writes through and does not allocate on writes, the L2 writes back, and a write does not fetch (NVIDIA's
    tuning guides for Maxwell and Pascal). What the spec does not say is assumed and listed in `assumed`.

    Raises Unsupported where the spec's numbers make no hierarchy, ValueError for more cores than the device has.
    """
    most = int(device.sm.count if isinstance(device, Gpu) else device.core.count)
    if not 1 <= cores <= most:
        raise ValueError(f"{cores} cores: {device.identity.id} has {most}")
    try:
        return _of_gpu(device, cores, policy) if isinstance(device, Gpu) else _of_cpu(device, cores, policy)
    except ValueError as error:
        raise Unsupported(f"the caches of {device.identity.id}: {error}") from None


def _of_cpu(device: Cpu, cores: int, policy: str) -> Hierarchy:
    parts = [("L1", device.l1), ("L2", device.l2), *([("L3", device.l3)] if device.l3 is not None else [])]
    levels = [
        Level(name=name, size=int(part.size), ways=int(part.ways), line=int(part.line), policy=policy, cores=int(part.shared_by))
        for name, part in parts
    ]  # fmt: skip
    assumed = (f"policy {policy} at every level", "levels are neither inclusive nor exclusive", "no prefetching")
    return Hierarchy(levels=tuple(levels), cores=cores, assumed=assumed)


def _of_gpu(device: Gpu, cores: int, policy: str) -> Hierarchy:
    assumed = [f"policy {policy} at every level", "sets chosen by a hash of the line's number"]
    ways = []
    for name, part in (("l1", device.l1), ("l2", device.l2)):
        if part.ways is None:
            chosen = next(w for w in range(GPU_WAYS, 0, -1) if part.size % (part.line * w) == 0)
            assumed.append(f"{name}.ways {chosen}: not in the spec")
        ways.append(int(part.ways or chosen))
    l1 = Level(name="L1", size=int(device.l1.size), ways=ways[0], line=int(device.l1.line), sector=int(device.l1.sector),
               policy=policy, write="through", allocate=False, fetch=False, hashed=True)  # fmt: skip
    l2 = Level(name="L2", size=int(device.l2.size), ways=ways[1], line=int(device.l2.line), sector=int(device.l2.sector),
               policy=policy, fetch=False, hashed=True, cores=int(device.sm.count))  # fmt: skip
    return Hierarchy(levels=(l1, l2), cores=cores, assumed=tuple(assumed))
