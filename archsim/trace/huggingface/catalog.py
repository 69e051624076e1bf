"""The shipped models, `traces/models/<id>.json`: the numbers of their `config.json`, with their source."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache

from archsim.base.files import data_folder, named_file, read_text
from archsim.base.limits import LIMITS
from archsim.base.naming import resolve
from archsim.trace.formats import is_path
from archsim.trace.huggingface.model import TransformerModel
from archsim.trace.huggingface.reader import load_model, model_of_text

FOLDER = "traces/models"


@cache
def names() -> tuple[str, ...]:
    """The identifiers of the shipped models, sorted."""
    return tuple(sorted(f.name.removesuffix(".json") for f in data_folder(FOLDER).iterdir() if f.name.endswith(".json")))


@cache
def aliases() -> Mapping[str, tuple[str, ...]]:
    """The other names of every shipped model."""
    return {name: tuple(json.loads(_text(name)).get("aliases", ())) for name in names()}


def find(name_or_path: str) -> TransformerModel:
    """A shipped model, or that of a `config.json`. Raises UnknownName, MissingFile or InputError."""
    if is_path(name_or_path):
        return load_model(named_file(name_or_path, stream=True))
    return _shipped(canonical(name_or_path))


def canonical(name: str) -> str:
    """The id of the shipped model of a name or alias. Raises UnknownName with the nearest ones."""
    return resolve("model", name, names(), aliases, "a model of your own is named by the path of its config.json")


@cache
def _shipped(name: str) -> TransformerModel:
    return model_of_text(_text(name), f"{FOLDER}/{name}.json")


def _text(name: str) -> str:
    return read_text(data_folder(FOLDER).joinpath(f"{name}.json"), LIMITS["config"].size)
