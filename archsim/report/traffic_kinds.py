"""The closed forms of the traffic beside simulated caches by the role of kernels: text, JSON and tables of the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from archsim.base.units import show
from archsim.report.markup import TableCell, number, percent, table, text, words
from archsim.report.text import table as text_table
from archsim.validation.traffic_kinds import NEGLIGIBLE, KernelDistance, RoleDistance

HEAD = ("role", "level", "kernels", "median", "90 %", "worst kernels: closed form, simulated")
HOW = (
    "Every different kernel of inference at batch 16 and of some training steps, with the algorithms and tiles that the model "
    "chooses: |closed form / simulated - 1| of the bytes below a level. Products of GPUs are simulated for three waves, the "
    "other kernels by the stack distances of their loops. What is less than "
    f"{100 * NEGLIGIBLE:.0f} % of a kernel's tensors counts as so much on both sides. Of a CPU the closed form counts between L1 "
    "and L2 what products read there, and no streams."
)
DEVICES = {"gpu": "GPUs", "cpu": "CPUs"}


def kinds_json(rows: Sequence[RoleDistance]) -> list[dict[str, Any]]:
    """The rows as plain values."""
    return [
        {"device_kind": row.device_kind, "role": row.role, "level": row.level, "kernels": row.kernels,
         "median": _rounded(row.median), "p90": _rounded(row.p90),
         "worst": [{"hardware": one.hardware, "network": one.network, "task": one.task, "layer": one.layer, "phase": one.phase,
                    "kernel": one.kernel, "closed": _rounded(one.closed), "simulated": _rounded(one.simulated)}
                   for one in row.worst]}
        for row in rows
    ]  # fmt: skip


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")


def kinds_text(rows: Sequence[RoleDistance]) -> str:
    """A table for each kind of device."""
    parts = []
    for kind, title in DEVICES.items():
        cells = [(row.role, row.level, str(row.kernels), f"{100 * row.median:.0f} %", f"{100 * row.p90:.0f} %",
                  _worst(row.worst[0])) for row in rows if row.device_kind == kind]  # fmt: skip
        if cells:
            parts.append(f"{title}: distance of the closed form by role\n{text_table(HEAD, cells, left=2)}")
    return "\n\n".join(parts)


def _worst(row: KernelDistance) -> str:
    sizes = ", ".join(show(value, "B", 3) for value in (row.closed, row.simulated))
    return f"{row.hardware} {row.network} {row.layer} {row.kernel}: {sizes}"


def kinds_page(rows: Sequence[RoleDistance]) -> list[str]:
    """Sections of the page."""
    sections = ["<h2>All kernels, by role</h2>", f'<p class="quiet">{text(HOW)}</p>']
    for kind, title in DEVICES.items():
        own = [_cells(row) for row in rows if row.device_kind == kind]
        if own:
            sections.append(f"<h3>{title}</h3>{table(HEAD, own)}")
    return sections


def _cells(row: RoleDistance) -> tuple[TableCell, ...]:
    return (words(row.role.replace("_", " ")), words(row.level), number(row.kernels, "1"), percent(row.median, ".0f"),
            percent(row.p90, ".0f"), words("; ".join(_worst(one) for one in row.worst)))  # fmt: skip
