"""The computer that this process runs on, as a spec."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from archsim.detect.architecture import core_of
from archsim.detect.describe import ID, describe, simd_bits, usable_cores
from archsim.detect.probe import Probe, Subject, measure
from archsim.detect.stretch import PAGE_B
from archsim.detect.system import Computer, Told, allowed_here, available_here, read_computer
from archsim.device.catalog import find
from archsim.device.file import loads
from archsim.device.spec import Spec

UNKNOWN_B = 1 << 31  # memory that is taken to be there where nobody tells


@dataclass(frozen=True, slots=True, kw_only=True)
class Detected:
    """A computer, the spec that stands for it, and the text of the spec's file; of a GPU alone there is no computer."""

    computer: Computer | None
    probe: Probe | None
    text: str
    spec: Spec


def detect(
    probe: bool = False, name: str = ID, root: Path = Path("/"), tell: Callable[[str], None] = lambda text: None
) -> Detected:
    """Describe the computer; with `probe` some of its values are measured, which takes seconds.

    Raises Unsupported where the system tells nothing, InputError where a value it tells cannot be.
    """
    computer = read_computer(root, allowed_here() if root == Path("/") else None)
    row = core_of(computer)
    relative = find(row.like)
    found = None
    if probe:
        found = measure(subject_of(computer, relative, available_here(root)), tell)
    text = describe(computer, row, relative, found, name)
    return Detected(computer=computer, probe=found, text=text, spec=loads(text, "this computer", find))


def subject_of(computer: Computer, relative: Spec, left: Told | None) -> Subject:
    """What the probe must know; `relative` is the spec of the nearest core, `left` the memory that can still be taken."""
    sizes = [size.value for size in (computer.memory, left) if size is not None]
    threads = usable_cores(computer)
    last = -(-threads // computer.caches[-1].shared_by) if computer.caches else 1
    tlb, page = (relative.entries.get(f"l2.{key}") for key in ("tlb_entries", "tlb_page"))
    small = tlb is not None and page is not None and page.value == PAGE_B
    return Subject(
        threads=threads, last=last, simd=simd_bits(computer, relative), fused=not {"fma", "asimd"}.isdisjoint(computer.flags),
        caches_B=tuple(cache.size_B for cache in computer.caches), memory_B=int(min(sizes, default=UNKNOWN_B)),
        tlb_entries=int(float(tlb.value)) if tlb is not None and small else 0,
    )  # fmt: skip


@cache
def host() -> Spec:
    """The spec of this computer without measuring anything; the same object in the whole process."""
    return detect().spec
