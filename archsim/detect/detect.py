"""The machine that this process runs on, as a spec."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from archsim.detect.architecture import core_of
from archsim.detect.describe import ID, describe, simd_bits, usable_cores
from archsim.detect.probe import Probe, measure
from archsim.detect.system import Machine, allowed_here, read_machine
from archsim.device.catalog import find
from archsim.device.spec import Spec, loads

COPIED_B, WALKED_B = 1 << 29, 1 << 29
LARGEST_SHARE = 8  # a probe takes at most this part of the memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Detected:
    """A machine, the spec that stands for it, and the text of the spec's file."""

    machine: Machine
    probe: Probe | None
    text: str
    spec: Spec


def detect(
    probe: bool = False, name: str = ID, root: Path = Path("/"), tell: Callable[[str], None] = lambda text: None
) -> Detected:
    """Describe the machine; with `probe` some of its values are measured, which takes seconds.

    Raises Unsupported where the system tells nothing, InputError where a value it tells cannot be.
    """
    machine = read_machine(root, allowed_here() if root == Path("/") else None)
    row = core_of(machine)
    relative = find(row.like)
    found = None
    if probe:
        most = int(machine.memory.value) // LARGEST_SHARE if machine.memory else COPIED_B
        found = measure(usable_cores(machine), simd_bits(machine, relative), min(COPIED_B, most), min(WALKED_B, most), tell)
    text = describe(machine, row, relative, found, name)
    return Detected(machine=machine, probe=found, text=text, spec=loads(text, "this machine", find))


@cache
def host() -> Spec:
    """The spec of this machine without measuring anything; the same object in the whole process."""
    return detect().spec
