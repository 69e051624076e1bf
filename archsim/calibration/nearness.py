"""What the errors of a prediction depend on: how near measurements are, and how much of its time a roofline explains."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# From near to far. What stands for each: rows of the device itself, of another device of its architecture, of neither.
CARD, ARCHITECTURE, ELSEWHERE = range(3)
LIKE = ("cards like this one with rows", "cards like this one without rows, of an architecture with rows",
        "architectures like this one without rows")  # fmt: skip
WIDE = ("fp32", "tf32", "fp64")
LARGE = 16  # samples of a batch from which on errors depend on it no longer
# What errors grow with, all 0 for the surest question. The last three: no row of its card, of its architecture, of its software.
FEATURES = ("unexplained", "narrow", "small", "architecture", "elsewhere", "software")


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """What a prediction is of: the device, its architecture, the stack."""

    architecture: str
    device: str
    stack: str

    @property
    def software(self) -> str:
        """The framework or engine of the stack, whatever its version and libraries, by which its id begins."""
        return self.stack.partition("-")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """How many rows of one source are of a platform."""

    platform: Platform
    source: str
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is predicted, as far as its errors depend on it.

    precision: of its operands, of which those with fewer bits than fp32 are narrow
    batch: samples at once; kernels that are timed alone have no batch
    explained: the share of its time that a roofline needs; 1 where there is none
    """

    platform: Platform
    precision: str = "fp32"
    batch: float = LARGE
    explained: float = 1.0

    def features(self, evidence: Sequence[Evidence]) -> tuple[float, ...]:
        """The values of `FEATURES`, each in [0, 1]; of the batch log(16 / batch) / log(16).

        >>> here = Platform(architecture="pascal", device="gtx_1080", stack="caffe-native")
        >>> Question(platform=here, precision="fp16", batch=4, explained=0.25).features([])
        (0.75, 1.0, 0.5, 1.0, 1.0, 1.0)
        """
        step = step_of(evidence, self.platform)
        small = math.log(LARGE / min(max(self.batch, 1.0), LARGE)) / math.log(LARGE)
        alike = any(one.platform.software == self.platform.software for one in evidence)
        return (1.0 - min(self.explained, 1.0), float(self.precision not in WIDE), small, float(step >= ARCHITECTURE),
                float(step == ELSEWHERE), float(not alike))  # fmt: skip


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
