"""The files of the shipped corpus: every CSV in `reports/published`, served models, and rows that other tools have predicted."""

from __future__ import annotations

from importlib.resources.abc import Traversable

from archsim.base.files import data_folder

FOLDER = "reports/published"
PEERS = f"{FOLDER}/peers"  # rows to which nothing is fitted, and the published predictions of other tools for them
PEER_SERVED = "served.csv"
PEER_ROWS = ("transformers.csv", PEER_SERVED)
SERVING = f"{FOLDER}/serving"  # runs of language models that engines served; no constant is fitted to them


def shipped_files(*, with_peers: bool = False) -> list[Traversable]:
    """The measurement files, by name; the rows of other tools' predictions come last."""
    files = [f for f in data_folder(FOLDER).iterdir() if f.name.endswith((".csv", ".csv.gz"))]
    return sorted(files, key=lambda f: f.name) + ([data_folder(PEERS).joinpath(name) for name in PEER_ROWS] if with_peers else [])


def serving_files() -> list[Traversable]:
    """The files of served language models, by name; the rows of other tools' predictions come last."""
    files = [f for f in data_folder(SERVING).iterdir() if f.name.endswith(".csv.gz")]
    return [*sorted(files, key=lambda f: f.name), data_folder(PEERS).joinpath(PEER_SERVED)]


def peer_files() -> list[Traversable]:
    """The files of other tools' predictions, by name: one a tool, by the ids of the rows."""
    files = [f for f in data_folder(PEERS).iterdir() if f.name.endswith(".csv") and f.name not in PEER_ROWS]
    return sorted(files, key=lambda f: f.name)
