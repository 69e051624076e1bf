"""The memory that this process can still take, before the kernel refuses it or kills the process."""

from __future__ import annotations

import re
from pathlib import Path

from archsim.detect.system import UNLIMITED, Told, groups, number_in, words_of

# names of a control group's limit, use, and cached files, which the kernel gives up first: version 2 and version 1
GROUPS = (
    ("memory.max", "memory.current", ("inactive_file", "active_file")),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", ("total_inactive_file", "total_active_file")),
)


def available_here(root: Path = Path("/")) -> Told | None:
    """The least of what the computer and the control groups around this process have left [B]; None where nobody tells."""
    found = [*_of_computer(root), *_of_groups(root), *_of_process()]
    return min(found, key=lambda told: told.value, default=None)


def _of_computer(root: Path) -> list[Told]:
    match = re.search(r"^MemAvailable:\s*(\d+) kB", words_of(root / "proc/meminfo"), re.MULTILINE)
    return [Told(value=int(match[1]) * 1024, source="/proc/meminfo, MemAvailable")] if match else []


def _of_groups(root: Path) -> list[Told]:
    found = []
    for folder in groups(root, "memory"):
        for limit, use, caches in GROUPS:
            most, taken = number_in(folder / limit), number_in(folder / use)
            if most is None or most >= UNLIMITED:
                continue
            stat = dict(re.findall(r"^(\w+) (\d+)$", words_of(folder / "memory.stat"), re.MULTILINE))
            cached = sum(int(stat.get(name, 0)) for name in caches)
            left = max(0, most - max(0, (taken or 0) - cached))
            found.append(Told(value=left, source="what the memory limit of the control group leaves"))
    return found


def _of_process() -> list[Told]:
    """The limit of the address space (`ulimit -v`)."""
    try:
        import resource
    except ImportError:  # no POSIX system
        return []
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    return [] if most in (resource.RLIM_INFINITY, -1) else [Told(value=most, source="ulimit -v")]
