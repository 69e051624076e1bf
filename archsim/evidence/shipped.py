"""The files of the shipped corpus: every CSV in `reports/published`."""

from __future__ import annotations

from importlib.resources.abc import Traversable

from archsim.base.files import data_folder

FOLDER = "reports/published"


def shipped_files() -> list[Traversable]:
    """The measurement files, by name."""
    files = [f for f in data_folder(FOLDER).iterdir() if f.name.endswith((".csv", ".csv.gz"))]
    return sorted(files, key=lambda f: f.name)
