"""Costs of kernels whose traffic something else than the closed forms has found, such as simulated caches."""

from __future__ import annotations

from dataclasses import dataclass

from archsim.cost.cost import Array
from archsim.cost.cpu import CpuTerms
from archsim.cost.gpu import GpuTerms


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedBytes:
    """Traffic of one launch of each variant, [D, V].

    core: between the two levels of a core's own caches, of a CPU [B]
    shared: through the last level, of a GPU through the L2 [B]
    dram_read: from memory [B]
    dram_written: to memory [B]
    """

    core: Array
    shared: Array
    dram_read: Array
    dram_written: Array

    def at(self, column: int) -> MovedBytes:
        """That of one variant, [D, 1]."""
        return self._part((slice(None), slice(column, column + 1)))

    def row(self, row: int) -> MovedBytes:
        """That on one device, [1, V]."""
        return self._part((slice(row, row + 1) if len(self.core) > 1 else slice(None), slice(None)))

    def _part(self, part: tuple[slice, slice]) -> MovedBytes:
        return MovedBytes(core=self.core[part], shared=self.shared[part], dram_read=self.dram_read[part],
                          dram_written=self.dram_written[part])  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class MovedGpuTerms(GpuTerms):
    """`GpuTerms` with this traffic in place of the closed forms."""

    moved: MovedBytes

    @property
    def reads(self) -> Array:
        """Bytes read from memory by one launch [B]."""
        return self.moved.dram_read

    @property
    def dram_bytes(self) -> Array:
        """Memory traffic of one launch [B]."""
        return self.moved.dram_read + self.moved.dram_written

    @property
    def l2_bytes(self) -> Array:
        """Traffic of one launch through the L2 [B]."""
        return self.moved.shared


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class MovedCpuTerms(CpuTerms):
    """`CpuTerms` with this traffic in place of the closed forms."""

    moved: MovedBytes

    @property
    def dram_bytes(self) -> Array:
        """Memory traffic of one launch [B]."""
        return self.moved.dram_read + self.moved.dram_written

    @property
    def llc_bytes(self) -> Array:
        """Traffic of one launch through the last cache level [B]."""
        return self.moved.shared

    @property
    def refill_bytes(self) -> Array:
        """Traffic of one launch between the first and the second level of all cores [B]."""
        return self.moved.core
