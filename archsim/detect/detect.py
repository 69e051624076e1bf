"""The computer that this process runs on, as a spec."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from archsim.detect.architecture import core_of
from archsim.detect.describe import ID, describe, simd_bits, usable_cores
from archsim.detect.probe import Probe, measure
from archsim.detect.system import Computer, allowed_here, read_computer
from archsim.device.catalog import find
from archsim.device.file import loads
from archsim.device.spec import Spec

COPIED_B, WALKED_B = 1 << 29, 1 << 29
LARGEST_SHARE = 8  # a probe takes at most this part of the memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Detected:
    """A computer, the spec that stands for it, and the text of the spec's file."""

    computer: Computer
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
        most = int(computer.memory.value) // LARGEST_SHARE if computer.memory else COPIED_B
        found = measure(usable_cores(computer), simd_bits(computer, relative), min(COPIED_B, most), min(WALKED_B, most), tell)
    text = describe(computer, row, relative, found, name)
    return Detected(computer=computer, probe=found, text=text, spec=loads(text, "this computer", find))


@cache
def host() -> Spec:
    """The spec of this computer without measuring anything; the same object in the whole process."""
    return detect().spec
