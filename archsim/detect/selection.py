"""Several devices by one word: `all`, a kind (`gpu`, `cpu`), or a pattern (`a100*`)."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from archsim.base.errors import UnknownName
from archsim.base.files import is_path
from archsim.detect.catalog import find, names

ALL = "all"
KINDS = ("gpu", "cpu", "tpu")
SIGNS = "*?["  # of a pattern


def selected(words: Iterable[str]) -> list[str]:
    """The devices that the words name, in their order, each once; a word that is no group and no pattern is left as it is.

    Patterns are those of a shell, over the ids of the shipped devices; case, spaces and hyphens do not matter.

    Raises UnknownName for a pattern that no shipped device has.

    >>> selected(["GTX 1080*", "i7_6700k"])
    ['gtx_1080', 'gtx_1080_ti', 'i7_6700k']
    """
    return list(dict.fromkeys(name for word in words for name in _named(word)))


def _named(word: str) -> list[str]:
    if word == ALL:
        return list(names())
    if word in KINDS:
        return [name for name in names() if find(name).kind == word]
    if not any(sign in word for sign in SIGNS) or is_path(word):
        return [word]
    pattern = word.lower().replace(" ", "_").replace("-", "_")
    found = [name for name in names() if fnmatchcase(name, pattern)]
    if not found:
        raise UnknownName("device", word, names(), hint="no shipped device has such a name; `archsim list hw` prints all")
    return found
