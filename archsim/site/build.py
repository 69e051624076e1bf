"""All pages of the site, and their rendering by Sphinx into a folder of HTML."""

from __future__ import annotations

import io
import json
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

import archsim
from archsim.base.errors import InputError, MissingExtra
from archsim.base.version import __version__
from archsim.site import pages

SECTIONS = {  # captions of the menu and their pages of the manual, in order
    "Begin": ("getting-started", "readers"),
    "How to": ("estimate", "what-if", "ui", "compare", "search", "tune", "sweep", "studies", "llm", "own-model", "profile",
               "own-files", "measure", "simulate", "cache", "power", "python"),
    "Labs": ("lab-roofline", "lab-caches", "lab-batch", "lab-precision", "lab-stalls"),
    "Understand": ("model", "tpu", "stacks", "validation", "predictors", "cells"),
    "Look up": ("devices", "formats", "glossary"),
}  # fmt: skip
MADE = {  # pages that are computed, with what each answers
    "Understand": {"accuracy": "how far predictions are from measurements, by class, source, engine and model",
                   "terms/index": "each quantity of the model: equation, source, worked number"},
    "Look up": {"commands/index": "every command with its options and examples",
                "keys/index": "every key of a device's file with its unit", "schemas/index": "the JSON of every command"},
}  # fmt: skip
MARK = ".archsim-site"  # stands in each folder that was made here, which alone may be replaced
CHECKOUT = Path(archsim.__file__).parents[1]
FROZEN = Path("reports", "validation")
SETTINGS = {
    "project": "archsim", "version": __version__, "release": __version__, "extensions": ["myst_parser"], "html_theme": "furo",
    "html_title": f"archsim {__version__}", "html_copy_source": False, "html_show_sourcelink": False,
    "html_show_copyright": False, "html_show_sphinx": False, "html_last_updated_fmt": None,
    "html_theme_options": {"navigation_with_keys": True},
    "myst_heading_anchors": 3, "highlight_language": "text", "nitpicky": True, "html_use_index": False,
    "html_permalinks_icon": "#", "smartquotes": False,
}  # fmt: skip
_NAMED = re.compile(r"(?P<before>page )?`(?P<command>archsim manual )?(?P<page>[a-z-]+)`")
_FENCE = re.compile(r"^```(torch|py|config|chakra|prototxt)$", re.MULTILINE)  # a block that a test takes by its word
HIGHLIGHTED = {"torch": "python", "py": "python", "config": "json", "chakra": "json", "prototxt": "text"}
GUIDES = {"readers", *SECTIONS["Labs"]}  # where any name of a page in backticks means that page


def sources(manual: Mapping[str, str], about: Mapping[str, str], group: click.Group, checkout: Path | None) -> dict[str, str]:
    """Every page as Markdown, by its place in the site.

    manual: pages of the manual by their names; about: one line for each; group: the commands
    checkout: folder with the summary of the validation; without one the page that needs it is left out
    """
    found = {place(name): _linked(name, text, manual) for name, text in manual.items()}
    found |= dict(pages.folders(group))
    summary, served = (_frozen(checkout, name) for name in ("validation", "served"))
    if summary:
        found["accuracy"] = pages.accuracy(summary, served)
    return found | {"index": _index(found, about)}


def _frozen(checkout: Path | None, name: str) -> dict[str, Any] | None:
    """A frozen result of a checkout, None where there is none."""
    file = checkout / FROZEN / f"{name}.json" if checkout else None
    found: dict[str, Any] | None = json.loads(file.read_text("utf-8")) if file and file.is_file() else None
    return found


def _index(found: Mapping[str, str], about: Mapping[str, str]) -> str:
    parts = [
        "# archsim\n\nHow long does this network take on that chip, and how much energy? Predictions for CPUs and GPUs that you "
        "need not own, each with an interval and published measurements beside it.\n"
    ]
    for caption, names in SECTIONS.items():
        made = MADE.get(caption, {})
        rows = {place(name): (pages.title(found[place(name)]), made.get(name) or about.get(name, ""))
                for name in (*names, *made) if place(name) in found}  # fmt: skip
        parts.append(f"## {caption}\n\n{pages.listed(rows, caption)}")
    return "\n".join(parts)


def place(name: str) -> str:
    """Where a page of the manual stands in the site: Sphinx has a page `search` of its own."""
    return "search-devices" if name == "search" else name


def _linked(name: str, text: str, manual: Mapping[str, str]) -> str:
    """A page whose mentions of other pages are links: page `model`, `archsim manual model`."""

    def link(found: re.Match[str]) -> str:
        page, named = found["page"], found["before"] or found["command"] or name in GUIDES
        if page not in manual or page == name or not named:
            return found[0]
        return f"{found['before'] or ''}[{page}]({place(page)}.md)"

    parts = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)  # nothing is a link in a block
    linked = "".join(part if at % 2 else _NAMED.sub(link, part) for at, part in enumerate(parts))
    return _FENCE.sub(lambda found: f"```{HIGHLIGHTED[found[1]]}", linked) + "\n"


def build(target: Path, texts: Mapping[str, str]) -> int:
    """Write the site of `texts` into the folder `target`; how many pages it has.

    The folder appears complete or not at all. Raises InputError where something else stands, MissingExtra without Sphinx, and
    RuntimeError for whatever Sphinx warns of: a page that is not in a menu, a link that leads nowhere.
    """
    if target.exists() and not (target / MARK).is_file():
        raise InputError(str(target), "is there already and is no site that archsim manual wrote; name another folder")
    if not target.parent.is_dir():
        raise InputError(str(target), f"cannot be written: no folder {target.parent}")
    with tempfile.TemporaryDirectory(prefix=".archsim-", dir=target.parent) as work:
        made = Path(work, "site")
        _render(Path(work), made, texts)
        (made / MARK).write_text("made by archsim manual --site\n", "utf-8")
        if target.exists():
            shutil.move(target, Path(work, "before"))
        shutil.move(made, target)
    return len(texts)


def _render(work: Path, made: Path, texts: Mapping[str, str]) -> None:
    try:
        from sphinx.application import Sphinx
        from sphinx.util.docutils import docutils_namespace
    except ImportError:
        raise MissingExtra("the manual as a site", "docs") from None
    source = work / "source"
    for name, text in texts.items():
        place = source / f"{name}.md"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8")
    said = io.StringIO()
    with docutils_namespace():  # its nodes are registered for one run
        how = {"confoverrides": SETTINGS, "status": None, "warning": said, "freshenv": True}
        Sphinx(source, None, made, work / "trees", "html", **how).build(force_all=True)
    if said.getvalue():
        raise RuntimeError(f"Sphinx: {said.getvalue().replace(str(source) + '/', '')}")
    for name in (".buildinfo", "objects.inv"):
        (made / name).unlink(missing_ok=True)
