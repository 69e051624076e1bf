"""A page for each part of the cost model, from the docstrings of the functions that compute its terms."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any

import archsim.cost
from archsim.render.markdown import table
from archsim.site.markdown import contents, fenced, plain

FOLDER = "terms"

Term = Callable[..., Any]


def pages() -> dict[str, str]:
    """Pages by their place in the site."""
    rooms = {room: (about.partition("\n"), terms) for room, about, terms in modules()}
    rows = [[f"[`{room}`]({room}.md)", plain(about[0]), str(len(terms))] for room, (about, terms) in rooms.items()]
    index = (
        "# Terms of the model\n\nEach quantity between an op and its time or energy: its equation with what the letters mean, "
        "where it comes from, and an example that a test computes. `archsim explain` prints the same equations with the numbers "
        f"of one layer in them.\n\n{table(['part', 'what it computes', 'terms'], rows)}\n{contents(rooms, hidden=True)}"
    )
    return {f"{FOLDER}/index": index} | {
        f"{FOLDER}/{room}": f"# `{room}`\n\n{plain(first)}\n\n{fenced(rest.strip()) if rest.strip() else ''}\n"
        + "\n".join(f"## `{term.__name__}`\n\n{_page(term)}" for term in terms)
        for room, ((first, _, rest), terms) in rooms.items()
    }


def modules() -> Iterator[tuple[str, str, list[Term]]]:
    """Modules of the cost model, what they say of themselves, and their public functions that show an example, in their order."""
    for found in pkgutil.iter_modules(archsim.cost.__path__):
        module = importlib.import_module(f"{archsim.cost.__name__}.{found.name}")
        terms: list[Term] = [thing for name, thing in vars(module).items() if inspect.isfunction(thing) and name[0] != "_"
                             and thing.__module__ == module.__name__ and ">>>" in (thing.__doc__ or "")]  # fmt: skip
        if terms:
            yield found.name, module.__doc__ or "", terms


def _page(term: Term) -> str:
    text, sign, example = (inspect.getdoc(term) or "").partition(">>>")
    return f"{fenced(text)}\n{fenced(sign + example, 'python')}"
