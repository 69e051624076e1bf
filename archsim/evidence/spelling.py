"""What people call the columns of a table of networks, and one measured value a column, as the columns that are read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from archsim.evidence.case import WATCHED
from archsim.evidence.family import Family
from archsim.evidence.table import CsvTable, Row

# column -> what people call it; spaces, units in brackets and case do not matter
COLUMNS = {
    "hardware": ("gpu", "cpu", "device", "hw", "card", "accelerator"), "network": ("model", "net"),
    "stack": ("framework", "software", "library", "backend"), "precision": ("dtype", "data_type"),
    "batch": ("batch_size", "bs"), "seq_len": ("sequence_length", "tokens"), "source": ("source_id",),
}  # fmt: skip
RATES = ("throughput_per_s", "throughput", "throughput_img_s", "images_per_s", "img_s", "samples_per_s", "samples_s", "fps")
# column of values -> its metric, and how much of the metric's unit one is
VALUES: dict[str, tuple[str, float]] = {
    **{f"{word}_{unit}": ("latency_s", scale) for word in ("latency", "time")
       for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6))},
    **dict.fromkeys(RATES, ("throughput_per_s", 1.0)),
    "power_w": ("power_w", 1.0), "energy_j": ("energy_j", 1.0), "energy_mj": ("energy_j", 1e-3),
}  # fmt: skip
NEEDED = ("hardware", "network")  # by which a table of whole networks is told
TEST = "test"  # what people call the split of watched rows
USUAL = {"task": "inference", "precision": "fp32", "stack": ""}  # of a file that has no such column; no stack: the device's own

TEMPLATE_HINT = "`archsim validate --template` prints a file to start from"
TEMPLATE = f"""\
# One measured value a row. Lines that begin with "# " are remarks. Optional columns: threads, seq_len, clock_mhz, source_ref.
# metric: latency_s (of a batch), throughput_per_s, power_w or energy_j (of a batch). stack: empty for the device's usual one.
# A table such as `gpu,model,batch,precision,latency_ms` is read, too: {", ".join(VALUES)}.
source,network,hardware,stack,task,batch,precision,metric,value
mine,resnet_50,gtx_1080,torch7-cudnn5.1,inference,16,fp32,latency_s,0.043
mine,resnet_50,gtx_1080,torch7-cudnn5.1,inference,16,fp32,power_w,110
"""


def as_written(table: CsvTable, families: Sequence[Family]) -> CsvTable:
    """The table with the columns of whole networks, where its header has them in other words; any other table as it is."""
    rows = [Row(row.line, {**row.cells, "split": WATCHED}) if row.cells.get("split") == TEST else row for row in table.rows]
    table = replace(table, rows=tuple(rows))
    if any(set(table.header).issuperset(family.columns) for family in families):
        return table
    known = {other: name for name, others in COLUMNS.items() for other in others}
    spelled = {name: known.get(plain, plain) for name in table.header for plain in [_plain(name)]}
    values = {name: VALUES[column] for name, column in spelled.items() if column in VALUES}
    long = {"metric", "value"} <= {*spelled.values()}
    if not {*NEEDED} <= {*spelled.values()} or not (values or long) or len({*spelled.values()}) < len(spelled):
        return table
    usual = USUAL | {"source": table.name}
    rows = []
    for row in table.rows:
        cells = usual | {spelled[name]: text for name, text in row.cells.items() if name not in values}
        given = {} if long else {name: row.cells[name] for name in values if row.cells[name].strip()}
        rows += [Row(row.line, cells | _measured(text, *values[name])) for name, text in given.items()]
        rows += [] if given else [Row(row.line, {"metric": "", "value": ""} | cells)]
    return replace(table, header=tuple(rows[0].cells), rows=tuple(rows))


def _plain(name: str) -> str:
    """`Latency (ms)` as `latency_ms`."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def _measured(text: str, metric: str, scale: float) -> dict[str, str]:
    """The cells of a value; what is no number stays as it is, for the check of its form."""
    try:
        return {"metric": metric, "value": text if scale == 1.0 else repr(float(text) * scale)}
    except ValueError:
        return {"metric": metric, "value": text}
