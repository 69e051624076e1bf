"""What keys, columns, bounds and constants mean is said in plain words and in those of the glossary.

A word that is in neither is a private one, or a term that the glossary lacks: say it otherwise, or define it in
`archsim/manual/glossary.md`. Everyday words are in `plain_words.txt`, which `python -m tests.data.test_glossary` writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from archsim.base.files import data_folder
from archsim.cost.bounds import BOUNDS
from archsim.device.device import PARTS
from archsim.device.spec import keys
from archsim.lower.columns import Columns, CpuColumns, GpuColumns, TileColumns, columns_of
from archsim.stack.key import lines
from archsim.stack.stack import Stack

PLAIN = Path(__file__).with_name("plain_words.txt")
WORD = re.compile(r"[A-Za-z][A-Za-z0-9-]*[A-Za-z0-9]|[A-Za-z]")
ENDINGS = ("", "s", "es", "d", "ed", "ing")  # of a word that is known


def docs() -> Iterator[tuple[str, str]]:
    """Each name with what it means."""
    yield from ((f"stack: {line.path}", line.doc) for line in lines(Stack))
    for record in (Columns, GpuColumns, TileColumns, CpuColumns):
        yield from ((f"column: {name}", column.meaning) for name, column in columns_of(record).items())
    yield from ((f"bound: {bound.name}", f"{bound.word} {bound.more} {bound.meaning}") for bound in BOUNDS.values())
    for kind in PARTS:
        yield from ((f"device: {key}", unit.doc) for key, unit, _ in keys(kind))


def words(text: str) -> set[str]:
    """The words of a text but what is code."""
    return {word.lower() for word in WORD.findall(re.sub(r"`[^`]*`", " ", text))}


def glossary() -> set[str]:
    return words(data_folder("archsim/manual").joinpath("glossary.md").read_text("utf-8"))


def unknown(text: str, known: set[str]) -> set[str]:
    """Its words that are not known, nor made from a known one by a usual ending."""
    return {word for word in words(text) if not any(word.removesuffix(end) in known for end in ENDINGS)}


def test_keys_are_explained_in_words_that_a_reader_knows() -> None:
    known = glossary() | {*PLAIN.read_text("utf-8").split()}
    assert {name: found for name, text in docs() if (found := unknown(text, known))} == {}


def test_a_private_word_is_found() -> None:
    assert unknown("issue slots of a warp in a wugged walkabout", glossary() | {"in", "a", "of"}) == {"wugged", "walkabout"}


def test_the_list_of_plain_words_holds_no_term_and_no_word_that_nobody_uses() -> None:
    listed, used = PLAIN.read_text("utf-8").split(), {word for _, text in docs() for word in words(text)}
    assert listed == sorted({*listed} - glossary())
    assert {*listed} <= used


if __name__ == "__main__":
    missing = sorted({word for _, text in docs() for word in unknown(text, glossary())})
    PLAIN.write_text("\n".join(missing) + "\n", "utf-8")
