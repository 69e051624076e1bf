"""How near the nearest measurement is to a prediction: the same card, its architecture, or neither."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# From near to far. What stands for each: rows of the device itself, of another device of its architecture, of neither.
CARD, ARCHITECTURE, ELSEWHERE = range(3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """What a prediction is of: the device, its architecture, the stack."""

    architecture: str
    device: str
    stack: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """How many rows of one source are of a platform."""

    platform: Platform
    source: str
    rows: int


def step_of(evidence: Iterable[Evidence], platform: Platform) -> int:
    """CARD, ARCHITECTURE or ELSEWHERE.

    >>> seen = [Evidence(platform=Platform(architecture="pascal", device="gtx_1080", stack="caffe-native"), source="a", rows=9)]
    >>> step_of(seen, Platform(architecture="pascal", device="titan_xp", stack="caffe-native"))
    1
    """
    near = [ARCHITECTURE if one.platform.device != platform.device else CARD
            for one in evidence if one.platform.architecture == platform.architecture]  # fmt: skip
    return min(near, default=ELSEWHERE)


def basis(evidence: Sequence[Evidence], platform: Platform) -> str:
    """The nearest evidence in words; empty where there is none at all.

    >>> seen = [Evidence(platform=Platform(architecture="pascal", device="gtx_1080", stack="caffe-native"), source="a", rows=9)]
    >>> basis(seen, Platform(architecture="pascal", device="gtx_1080", stack="caffe-cudnn5.1"))
    '9 cells of gtx_1080 with other software'
    """
    own = [one for one in evidence if one.platform.device == platform.device]
    kin = [one for one in evidence if one.platform.architecture == platform.architecture]
    same = [one for one in own if one.platform.stack == platform.stack]
    alike = [one for one in kin if one.platform.stack == platform.stack]
    for found, words in (
        (same, f"of {platform.device} with {platform.stack}"), (own, f"of {platform.device} with other software"),
        (alike, f"of other {platform.architecture} devices with {platform.stack}"),
        (kin, f"of other {platform.architecture} devices with other software"), (evidence, "of other architectures"),
    ):  # fmt: skip
        if found:
            return f"{sum(one.rows for one in found):,} cells {words}"
    return ""
