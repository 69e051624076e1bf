"""A page for each kind of device: every key that its spec can have."""

from __future__ import annotations

from itertools import groupby

from archsim.base.units import TEXT
from archsim.device.device import CLASSES, PARTS
from archsim.device.part import Unit
from archsim.device.spec import keys, read_by
from archsim.render.markdown import table
from archsim.site.markdown import contents, plain

FOLDER = "keys"
KINDS = {"gpu": "GPU", "cpu": "CPU", "tpu": "TPU"}
HEAD = ("key", "unit", "range", "needed", "moves", "meaning")


def pages() -> dict[str, str]:
    """Pages by their place in the site."""
    index = (
        "# Keys of a spec\n\nA spec describes one device in a TOML file: what each value means, in which unit and within which "
        "limits, and which fidelities it moves. `archsim show hw NAME` prints those of a device with their sources; the page "
        "[own-files](../own-files.md) says how to write one.\n\n"
    )
    return {f"{FOLDER}/index": index + contents(CLASSES)} | {f"{FOLDER}/{kind}": _page(kind) for kind in CLASSES}


def _page(kind: str) -> str:
    parts = []
    for part, rows in groupby(keys(kind), key=lambda row: row[0].partition(".")[0]):
        about = plain((PARTS[kind][part].__doc__ or "").partition("\n")[0])
        parts.append(f"## `[{part}]`\n\n{about}\n\n" + table(HEAD, [_row(*row) for row in rows]))
    return f"# Spec of a {KINDS[kind]}\n\n" + "\n".join(parts)


def _row(key: str, unit: Unit, required: bool) -> list[str]:
    words = unit.unit == TEXT
    return [f"`{key}`", "word" if words else plain(unit.unit), "" if words else plain(unit.range), "yes" if required else "",
            read_by(unit) or "nothing", plain(unit.doc)]  # fmt: skip
