"""Finding any device that a user can name: a shipped one, a file, `host` (this computer), or several by one word or pattern."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from archsim.base.errors import UnknownName
from archsim.base.files import is_path
from archsim.detect.system import UNTOLD
from archsim.device import catalog
from archsim.device.catalog import names
from archsim.device.device import Cpu
from archsim.device.spec import Spec
from archsim.stack.stack import Stack

__all__ = ["HOST", "find", "names", "power_notes", "threads_of"]

HOST = "host"


def find(name_or_path: str, threads: int = 0) -> Spec:
    """The spec of a shipped device (by id or alias), of a file, or of this computer; of the cores of it that `threads` occupy.

    Raises what `archsim.device.catalog.find` does.
    """
    return catalog.occupied(catalog.find(name_or_path, {HOST: _host}), threads)


def threads_of(spec: Spec, stack: Stack) -> int:
    """Threads that a stack takes on a CPU of two kinds of core when nobody sets them; 0 for any other device."""
    faster = catalog.faster_cores(spec)
    return stack.threads_of_kinds(int(spec.device.core.count), faster) if isinstance(spec.device, Cpu) and faster else 0


def power_notes(spec: Spec) -> list[str]:
    """That the power of a detected computer is a share of another one's, where nobody told it."""
    entry = spec.entries["power.tdp"]
    if entry.kind != "assumed" or not entry.note.startswith(UNTOLD):
        return []
    return [f"power of {spec.identity.id}: {entry.written}, {entry.note.partition('; ')[2]}: a guess, and so is its rank per "
            "watt; --set power.tdp=WATT sets it"]  # fmt: skip


def _host() -> Spec:
    from archsim.detect.detect import host

    return host()


# ------------------------------------------------------------------------------------------------------ several devices

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
