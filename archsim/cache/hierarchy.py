"""The description of a cache hierarchy, checked once, and the hierarchy of a device."""

from __future__ import annotations

from dataclasses import dataclass

from archsim.base.errors import Unsupported
from archsim.cache.kernel import BIT_PLRU, FIFO, LRU, RANDOM, SRRIP, TREE_PLRU
from archsim.device.cpu_core import INCLUSIONS
from archsim.device.device import Cpu, Device, Gpu, with_caches

POLICIES = {"lru": LRU, "fifo": FIFO, "random": RANDOM, "tree-plru": TREE_PLRU, "bit-plru": BIT_PLRU, "srrip": SRRIP}
HOLDS = ("any", "inclusive", "exclusive")
WRITES = ("back", "through")
MOST_SECTORS = 16  # of a line: dirty and present sectors share one integer
MOST_LINES = 1 << 24  # in all levels together, 1 GiB of lines of 64 B; each line takes two or three integers
GPU_WAYS = 16  # of an L2 whose spec has none: Mei and Chu (2017) and Jia et al. (2018) find 16 to 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One level. `size`, `line` and `sector` in bytes; `cores` is how many cores share one instance.

    sector: unit of transfer to the level above; 0 for the whole line
    holds: `inclusive` (every line of the level above; what it evicts is dropped above), `exclusive` (the victims of the level
        above; it gives up a line that it is asked for), or `any` (neither)
    fetch: whether a write that misses fetches the line first
    writes_touch: whether a write that hits counts as a use
    hashed: whether higher bits of the line number are folded into the set index

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
        """Sets of one instance. Any whole number: the set is the remainder of the line number."""
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
        found.append(f"tree-plru halves the ways: {level.ways} is not a power of two up to 32")
    if level.holds == "exclusive" and (level.write != "back" or not level.allocate):
        found.append("an exclusive level takes the victims of the one above, so it must write back and allocate")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchy:
    """Levels from the cores (first) to memory (last), for `cores` cores. Raises ValueError where they do not fit together.

    There is no coherence: a line that one core writes stays unchanged in the private caches of the others.
    """

    levels: tuple[Level, ...]
    cores: int = 1
    assumed: tuple[str, ...] = ()  # assumptions about what the spec of a device does not say, as text

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
        """Number of instances of a level."""
        return -(-self.cores // self.levels[level].cores)

    @property
    def line(self) -> int:
        """The line [B], the same in all levels."""
        return self.levels[0].line

    @property
    def sector(self) -> int:
        """The smallest sector of any level [B]; one bit of a mask stands for one."""
        return min(level.sector or level.line for level in self.levels)

    @property
    def one_way(self) -> bool:
        """Whether no level changes one above it, so that each level can process many requests before the next one does."""
        return all(level.holds == "any" for level in self.levels)


def hierarchy_of(device: Device, cores: int = 1, policy: str = "lru") -> Hierarchy:
    """The caches of a device as `cores` of its cores (CPU) or SMs (GPU) see them.

    CPU: private L1 and L2, and a last level shared as the spec says; all write back and have lines as long as those of the first,
    and a level is inclusive or takes victims as the spec says. GPU: the L1 of each SM writes through and does not allocate on
    writes; the L2 writes back; a write does not fetch (NVIDIA's tuning guides for Maxwell and Pascal).
    What the spec does not say is listed in `assumed`.

    Raises Unsupported where the spec's numbers make no hierarchy, ValueError for more cores than the device has.

    >>> from archsim.device.catalog import find
    >>> [(level.name, level.size) for level in hierarchy_of(find("i7_6700k").device).levels]  # B
    [('L1', 32768), ('L2', 262144), ('L3', 8388608)]
    """
    device = with_caches(device, "caches")
    most = int(device.sm.count if isinstance(device, Gpu) else device.core.count)
    if not 1 <= cores <= most:
        raise ValueError(f"{cores} cores: {device.identity.id} has {most}")
    try:
        return _of_gpu(device, cores, policy) if isinstance(device, Gpu) else _of_cpu(device, cores, policy)
    except ValueError as error:
        raise Unsupported(f"the caches of {device.identity.id}: {error}") from None


def _of_cpu(device: Cpu, cores: int, policy: str) -> Hierarchy:
    parts = [("L1", device.l1), ("L2", device.l2), *([("L3", device.l3)] if device.l3 is not None else [])]
    line = int(device.l1.line)
    holds = {name: getattr(part, "inclusion", None) for name, part in parts}
    levels = [
        Level(name=name, size=int(part.size), ways=int(part.ways), line=line, policy=policy, cores=int(part.shared_by),
              holds=INCLUSIONS[holds[name] or "neither"])
        for name, part in parts
    ]  # fmt: skip
    assumed = [f"policy {policy} at every level", "no prefetching"]
    assumed += [f"{name.lower()}.inclusion neither: not in the spec" for name, _ in parts[1:] if holds[name] is None]
    assumed += [f"{name.lower()}.line {line}: the spec's {int(part.line)} B are filled in parts of a line of the L1"
                for name, part in parts if int(part.line) != line]  # fmt: skip
    return Hierarchy(levels=tuple(levels), cores=cores, assumed=tuple(assumed))


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
