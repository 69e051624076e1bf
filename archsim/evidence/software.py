"""The table from what a source calls its software to the stack that models it (`software.toml`)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache

from archsim.base.errors import InputError
from archsim.base.files import data_folder
from archsim.base.toml import read_document
from archsim.evidence.beginning import longest
from archsim.evidence.resolve import Refused
from archsim.evidence.shipped import FOLDER

FILE = "software.toml"


def stack_of(cells: Mapping[str, str], table: str, words: str) -> str:
    """The stack of a row: its own; else that of the longest entry of the file's table with which `words`, its software, begin.

    In an entry `*` stands for any text.

    Raises Refused where no entry fits, and for an empty entry: software that is known and that no stack models.
    """
    found = cells.get("stack") or _lookup(table, words)
    if not found:
        raise Refused(f"software {words!r} has no stack")
    return found


@lru_cache(maxsize=4096)
def _lookup(table: str, words: str) -> str:
    return longest(_tables().get(table, {}), words) or ""


@cache
def _tables() -> Mapping[str, Mapping[str, str]]:
    place = data_folder(FOLDER).joinpath(FILE)
    document = read_document(place, "sources")
    wrong = [f"{name}: must be a table of texts" for name, rows in document.items() if not _is_texts(rows)]
    if wrong:
        raise InputError(str(place), wrong)
    return document


def _is_texts(rows: object) -> bool:
    return isinstance(rows, dict) and all(isinstance(value, str) for value in rows.values())
