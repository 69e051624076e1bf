"""The checks of the contract. Each returns the faults that it finds, so that a test can show that it finds some."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from html.parser import HTMLParser
from typing import Any

from archsim.render.blocks import Block, Verdict, visible

VOID = {"meta", "link", "br", "hr", "img", "input", "col"}
OF_SVG = {"line", "rect", "circle", "path", "polyline", "polygon"}  # which may end themselves
ADDRESSES = ("src", "href", "action", "xlink:href")
INSIDE = ("data:", "#")  # beginnings of addresses that load nothing
NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
HEAVIEST = 300_000  # of a page [B]
HOSTILE = "<script>alert('1')</script> & \"quoted\" </title>\x07\x1b[2J"
SHOWN = {"title", "asked", "lines", "sentences", "rows", "text", "tip", "head", "notes", "name", "labels", "tips", "guides", "x",
         "y", "series", "columns", "bar", "tree", "names"}  # fields of blocks in which names from files may stand  # fmt: skip


def open_schema(schema: Any) -> Any:
    """The schema without room for keys that it does not name."""
    if isinstance(schema, dict):
        more = {"additionalProperties": False} if "properties" in schema and "additionalProperties" not in schema else {}
        return {name: open_schema(value) for name, value in schema.items()} | more
    return [open_schema(value) for value in schema] if isinstance(schema, list) else schema


def against_schema(record: Any, schema: Mapping[str, Any]) -> list[str]:
    """Where JSON is not as a schema says, keys that it does not name included."""
    import jsonschema

    jsonschema.Draft202012Validator.check_schema(schema)
    problems = jsonschema.Draft202012Validator(open_schema(schema)).iter_errors(record)
    return [f"{problem.json_path}: {problem.message[:200]}" for problem in problems]


def said(verdict: Verdict) -> Iterator[str]:
    """Every text of a verdict."""
    yield from (verdict.title, *verdict.asked, *verdict.sentences)
    for line in verdict.lines:
        yield from line


def without_its_verdict(text: str, blocks: Iterable[Block]) -> list[str]:
    """Numbers of the verdicts that a text lacks; and a first screen that does not begin with one."""
    shown = visible(blocks, 0, "text")
    if not shown or not isinstance(shown[0], Verdict):
        return ["does not begin with a verdict"]
    held = Counter(NUMBER.findall(text))
    wanted = Counter(number for block in shown if isinstance(block, Verdict) for one in said(block)
                     for number in NUMBER.findall(one))  # fmt: skip
    return [f"lacks {number}" for number in wanted - held]


def ragged(text: str) -> list[str]:
    """What is wrong with CSV: no rows, rows of other widths, columns of one name, formulas."""
    head, *rows = csv.reader(io.StringIO(text))
    found = [] if rows else ["no rows"]
    found += [f"row {i} has {len(row)} columns, not {len(head)}" for i, row in enumerate(rows) if len(row) != len(head)]
    found += [f"two columns {name!r}" for name, count in Counter(head).items() if count > 1]
    return found + [f"a formula: {cell!r}" for row in rows for cell in row if cell[:1] in ("=", "@", "\t")]


def too_wide(text: str, width: int) -> list[str]:
    """Lines that a screen would break."""
    return [line for line in text.splitlines() if len(line) > width]


def lost(text: str, narrow: str) -> set[str]:
    """Words that a narrow screen does not show; a long one may be cut."""
    all_of, shown = ({word.strip(".,;:()") for word in said.split() if re.search(r"\w\w", word)} for said in (text, narrow))
    return {word for word in all_of if len(word) < 24} - shown


def control_signs(text: str) -> list[str]:
    """Signs that move a cursor or colour what follows."""
    return sorted({repr(sign) for sign in text if not sign.isprintable() and sign != "\n"})


class PageReader(HTMLParser):
    """Reads markup, and keeps what is wrong with it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.faults: list[str] = []
        self.names: Counter[str] = Counter()
        self.ids: Counter[str] = Counter()
        self._open: list[str] = []
        self.feed(text)
        self.close()
        self.faults += [f"<{name}> is not closed" for name in self._open]
        self.faults += [f"two elements with the id {name}" for name, count in self.ids.items() if count > 1]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._begins(tag, attrs)
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._begins(tag, attrs)
        if tag not in VOID | OF_SVG:
            self.faults.append(f"<{tag}/> does not end")

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.faults.append(f"</{tag}> closes nothing of that name")

    def _begins(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names[tag] += 1
        for name, value in attrs:
            if name == "id":
                self.ids[value or ""] += 1
            if name in ADDRESSES and not (value or "").startswith(INSIDE):
                self.faults.append(f"<{tag}> refers to {value}")
            if name.startswith("on"):
                self.faults.append(f"<{tag}> has {name}")


def ill_formed(page: str) -> list[str]:
    """What is wrong with a page: tags, ids, references, a title, its size."""
    read = PageReader(page)
    found = list(read.faults)
    if not re.search(r"<title>[^<]*\S[^<]*</title>\s*<style>", page):
        found.append("no title")
    if len(page.encode()) > HEAVIEST:
        found.append(f"{len(page.encode()):,} bytes")
    for sheet in re.findall(r"(?s)<style>(.*?)</style>", page):
        found += [f"a style loads {one}" for one in re.findall(r"@import[^;]*|url\((?!data:)[^)]*\)", sheet)]
    return found


def not_a_part(notebook: str) -> list[str]:
    """What is wrong with a piece of a notebook: a frame of its own, scripts, styles that reach others."""
    read = PageReader(notebook)
    found = [*read.faults, *(f"<{name}> in a notebook" for name in ("html", "head", "body", "script") if read.names[name])]
    if not notebook.startswith("<div") or not notebook.rstrip().endswith("</div>"):
        found.append("more than one element")
    sheets = re.findall(r"(?s)<style>(.*?)</style>", notebook)
    return found + [f"styles for all of the notebook: {sheet[:40]}" for sheet in sheets if not _of_one_scope(sheet.strip())]


def _of_one_scope(sheet: str) -> bool:
    """Whether all rules of a style sheet stand in one `@scope`."""
    depth = [0]
    for sign in sheet:
        depth.append(depth[-1] + {"{": 1, "}": -1}.get(sign, 0))
    return sheet.startswith("@scope") and depth[-1] == 0 and 0 not in depth[sheet.index("{") + 1 : -1]


def more_tags(page: str, hostile: str) -> list[str]:
    """Elements that a page with hostile names has and the same page without has not; and control characters in it."""
    ours, theirs = PageReader(page), PageReader(hostile)
    found = [*theirs.faults, *(f"{theirs.names[name]} of <{name}>, not {ours.names[name]}"
                               for name in theirs.names if theirs.names[name] > ours.names[name])]  # fmt: skip
    return found + [sign for sign in control_signs(hostile) if sign not in ("'\\t'", "'\\xa0'")]


def spoiled(value: Any, inside: bool = False) -> Any:
    """Blocks of which every word is an attack; numbers and tones are as they were."""
    if isinstance(value, str):
        return f"{value}{HOSTILE}" if inside and value else value
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: spoiled(getattr(value, field.name), True) for field in fields(value)
                                 if field.name in SHOWN})  # fmt: skip
    if isinstance(value, Mapping):
        return {key: spoiled(one, inside and key == "tree") for key, one in value.items()}
    if isinstance(value, Sequence):
        kept = [spoiled(one, inside) for one in value]
        if len(kept) == 3 and value[0] in ("x", "y") and isinstance(value[1], float):
            kept[0] = value[0]  # the axis of a guide
        if len(kept) == 4 and isinstance(value[1], float):
            kept[3] = value[3]  # the bound of a leaf
        return tuple(kept)
    return value
