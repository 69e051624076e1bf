"""The shipped models, `traces/models/<id>.json`: the numbers of their `config.json`, with their source."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from archsim.base.errors import MissingFile
from archsim.base.files import LIMITS, data_folder, named_file, read_text
from archsim.base.naming import plain, resolve
from archsim.trace.formats import SUFFIXES, is_path

if TYPE_CHECKING:
    from archsim.trace.huggingface.model import TransformerModel

FOLDER = "traces/models"
HUB = re.compile(r"\w[\w.-]*/[\w.-]+")  # an id of the Hugging Face hub: OWNER/NAME
TUNED = re.compile(r"^meta-|-(?:instruct|chat|it|hf|base)\b", re.IGNORECASE)  # words of a name that change no shape


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
    if not is_path(name_or_path):
        return _shipped(canonical(name_or_path))
    if is_hub(name_or_path):
        return _of_hub(*name_or_path.split("/"))
    from archsim.trace.huggingface.reader import load_model

    return load_model(named_file(name_or_path, stream=True))


def is_hub(text: str) -> bool:
    """Whether a text is an id of the hub, and not the path of a file."""
    return HUB.fullmatch(text) is not None and not text.lower().endswith(SUFFIXES) and not Path(text).exists()


def _of_hub(owner: str, name: str) -> TransformerModel:
    """The shipped model of a repository, or of a tuned version of it by the same owner.

    >>> _of_hub("Qwen", "Qwen2.5-7B-Instruct").name, _of_hub("meta-llama", "Meta-Llama-3.1-8B").name
    ('qwen2_7b', 'llama_3_1_8b')
    """
    for known in names():
        of, _, own = _shipped(known).repository.partition("/")
        if of.lower() == owner.lower() and _bare(name) in map(_bare, (own, known, *aliases()[known])):
            return _shipped(known)
    raise MissingFile(f"{owner}/{name}: no such file, and no shipped model of this repository; `archsim list models` prints "
                      "all, and of any other one its config.json does, saved and named by its path")  # fmt: skip


def _bare(name: str) -> str:
    return plain(TUNED.sub("", name))


def canonical(name: str) -> str:
    """The id of the shipped model of a name or alias. Raises UnknownName with the nearest ones."""
    return resolve("model", name, names(), aliases, "a model of your own is named by the path of its config.json")


@cache
def _shipped(name: str) -> TransformerModel:
    from archsim.trace.huggingface.reader import model_of_text

    return model_of_text(_text(name), f"{FOLDER}/{name}.json")


def _text(name: str) -> str:
    return read_text(data_folder(FOLDER).joinpath(f"{name}.json"), LIMITS["config"].size)
