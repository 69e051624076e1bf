"""Pieces of Markdown for Sphinx: fences, lists of contents, text in which nothing is taken for markup."""

from __future__ import annotations

import re
from collections.abc import Iterable

_MARKUP = re.compile(r"([\\*_\[\]<>|$#{}])")


def plain(text: str) -> str:
    """Text in which no character is markup, on one line.

    >>> plain("a_b | [s]\\nof <x>")
    'a\\\\_b \\\\| \\\\[s\\\\] of \\\\<x\\\\>'
    """
    parts = re.split(r"(`[^`\n]+`)", " ".join(text.split()))  # what stands between backticks is code already
    return "".join(part.replace("|", "\\|") if at % 2 else _MARKUP.sub(r"\\\1", part) for at, part in enumerate(parts))


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
