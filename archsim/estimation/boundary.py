"""Where a power is measured: at the device itself, or at the plug of its computer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from archsim.base.errors import ArgumentError
from archsim.calibration.constants import Spread

WALL, DEVICE = "wall", "device"
BOUNDARIES = {DEVICE: "the board, module or package that power_boundary of the device names", WALL: "the plug of the computer"}


# what stands beside the devices -> what it covers; keys of energies and powers at the wall
BESIDE = {
    "host": "processors of the computer beside the devices", "memory": "its memory modules",
    "other": "its main board, drives, network cards and switches", "fans": "its fans, and converters on its boards",
    "supply": "what its power supplies lose",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class WallPower:
    """A computer at its plug.

    devices: in it, all with the same work; device_w: power of each at its own boundary, `device_boundary`
    computer_w: what a meter shows; parts_w: of it, `devices host memory other fans supply`; they add up to it
    share_w: what falls to one device
    load, efficiency: of the power supplies
    held_out: errors on systems that were held out, of the class `interval_class`
    assumed_values: keys of the system's file that nobody published
    """

    system: str
    system_name: str
    devices: int
    device_w: float
    device_boundary: str
    computer_w: float
    parts_w: Mapping[str, float]
    share_w: float
    load: float
    efficiency: float
    interval_class: str
    held_out: Spread
    assumed_values: tuple[str, ...]

    @property
    def added_w(self) -> Mapping[str, float]:
        """What falls to one device of all that stands beside the devices [W], by part."""
        return {name: power / self.devices for name, power in self.parts_w.items() if name != "devices"}


def check_boundary(boundary: str | None, system: str | None) -> None:
    """Raise ArgumentError for a boundary that there is not, and for a system that nothing is asked of."""
    if boundary is not None and boundary not in BOUNDARIES:
        raise ArgumentError(f"boundary {str(boundary)[:40]!r}: one of {', '.join(BOUNDARIES)}")
    if system is not None and boundary != WALL:
        raise ArgumentError(f"system {system}: moves power at the wall alone; add boundary wall")
