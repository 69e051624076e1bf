"""Pieces of Markdown: tables, fences, text in which nothing is taken for markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_MARKUP = re.compile(r"([\\*_\[\]<>|$#{}])")


def plain(text: str) -> str:
    """Text in which no character is markup, on one line.

    >>> plain("a_b | [s]\\nof <x>")
    'a\\\\_b \\\\| \\\\[s\\\\] of \\\\<x\\\\>'
    """
    parts = re.split(r"(`[^`\n]+`)", " ".join(text.split()))  # what stands between backticks is code already
    return "".join(part.replace("|", "\\|") if at % 2 else _MARKUP.sub(r"\\\1", part) for at, part in enumerate(parts))


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: int = 0) -> str:
    """A table whose cells are Markdown; the last columns hold `numbers`, which stand at the right.

    >>> print(table(["key", "unit"], [["`sm.count`", "1"]]), end="")
    | key | unit |
    | --- | --- |
    | `sm.count` | 1 |
    """
    lines = [head, ["---"] * (len(head) - numbers) + ["--:"] * numbers, *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def fenced(text: str, language: str = "text") -> str:
    """A block of code.

    >>> print(fenced("a = 1", "python"), end="")
    ```python
    a = 1
    ```
    """
    return f"```{language}\n{text.rstrip()}\n```\n"


def contents(names: Iterable[str], caption: str = "", hidden: bool = False) -> str:
    """What a page lists below itself, in this order, as Sphinx takes it.

    >>> print(contents(["model", "power"], caption="Model"), end="")
    ```{toctree}
    :caption: Model
    :maxdepth: 1
    <BLANKLINE>
    model
    power
    ```
    """
    options = [f":caption: {caption}"] * bool(caption) + [":hidden:"] * hidden + [":maxdepth: 1"]
    return fenced("\n".join([*options, "", *names]), "{toctree}")
