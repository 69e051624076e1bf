"""The files of the shipped corpus: every CSV in `reports/published`. Adding measurements is dropping a file there."""

from __future__ import annotations

import hashlib
from importlib.resources.abc import Traversable

from archsim.files import data_folder

FOLDER = "reports/published"


def shipped_files() -> list[Traversable]:
    """The measurement files, by name."""
    files = [f for f in data_folder(FOLDER).iterdir() if f.name.endswith((".csv", ".csv.gz"))]
    return sorted(files, key=lambda f: f.name)


def corpus_hash() -> str:
    """Sixteen hexadecimal digits that stand for the names and contents of all of them."""
    digest = hashlib.sha256()
    for file in shipped_files():
        digest.update(file.name.encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]
