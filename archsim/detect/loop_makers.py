"""Which makers of loops can be had on this computer."""

from __future__ import annotations

from archsim.detect.loops import Loops


class NoLoops:
    """Where there are none."""

    how = "copies and products alone"

    def chain(self) -> None:
        """Not here."""

    def fma(self, bits: int, chains: int, fused: bool) -> None:
        """Not here."""

    def chase(self, chains: int) -> None:
        """Not here."""

    def read(self, bits: int) -> None:
        """Not here."""

    def barrier(self) -> None:
        """Not here."""


def available(name: str) -> Loops:
    """The makers of that name: `llvm`, `bytes` or `none`.

    Raises OSError, RuntimeError or ImportError, with the reason, where they cannot be had here.
    """
    if name == "llvm":
        from archsim.detect.llvm_loops import LlvmLoops

        return LlvmLoops()
    if name == "bytes":
        from archsim.detect.byte_loops import ByteLoops

        return ByteLoops()
    return NoLoops()
