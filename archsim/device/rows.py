"""One of several devices whose numbers are columns, [D, 1]."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np


def first_of(numbers: Any) -> float:
    """A number as such, or that of the first device of a column.

    >>> first_of(2), first_of(np.array([[10.0], [20.0]]))
    (2.0, 10.0)
    """
    return float(np.ravel(numbers)[0])


def rows_of(device: Any) -> int:
    """How many devices a record with columns stands for.

    >>> from archsim.device.catalog import find
    >>> rows_of(find("gtx_1080").device), rows_of(find("gtx_1080").with_values({"sm.count": np.array([[10.0], [20.0]])}).device)
    (1, 2)
    """
    if is_dataclass(device) and not isinstance(device, type):
        return max((rows_of(getattr(device, one.name)) for one in fields(device)), default=1)
    return int(device.size) if isinstance(device, np.ndarray) else 1


def at_row(device: Any, row: int) -> Any:
    """The device of a row, with a number for each column; the record itself where it has no columns.

    >>> from archsim.device.catalog import find
    >>> at_row(find("gtx_1080").with_values({"sm.count": np.array([[10.0], [20.0]])}).device, 1).sm.count
    20.0
    """
    if isinstance(device, np.ndarray):
        return float(np.ravel(device)[row if device.size > 1 else 0])
    if not is_dataclass(device) or isinstance(device, type) or rows_of(device) == 1:
        return device
    return replace(device, **{one.name: at_row(getattr(device, one.name), row) for one in fields(device) if one.init})
