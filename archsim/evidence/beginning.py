"""How tables of a source's words are looked up: by what a text begins with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")


def begins(text: str, start: str) -> bool:
    """Whether `text` begins so, where `*` stands for any text.

    >>> begins("vllm-0.24.0 fp8_block", "vllm-0.*fp8_block"), begins("vllm-0.24.0 fp8", "vllm-0.*fp8_block")
    (True, False)
    """
    return re.match(".*".join(map(re.escape, start.split("*"))), text) is not None


def longest(beginnings: Mapping[str, T], text: str) -> T | None:
    """What belongs to the longest of the beginnings that `text` has.

    >>> longest({"vllm-": 1, "vllm-0.14": 2}, "vllm-0.14.0"), longest({"vllm-": 1}, "trtllm-1.0.0")
    (2, None)
    """
    found = [start for start in beginnings if begins(text, start)]
    return beginnings[max(found, key=len)] if found else None
