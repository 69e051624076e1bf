"""Names as people, papers and drivers write them: one rule for what they have in common, and one for choosing among them.

`plain` decides which spellings are the same name. `resolve` goes from a spelling to an id: an exact id wins, then the spelling of
an id, then an alias; what several things are called is an error that lists them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from archsim.base.errors import UnknownName

LONGEST = 200  # characters of a name that are looked at; patterns take long for more, and no name has as many
_MARKS = re.compile(r"\((?:r|tm|c)\)|[®™©]|@\s*[\d.]+\s*ghz", re.IGNORECASE)
_CPU = re.compile(r"\bcpu\b", re.IGNORECASE)
_BETWEEN = re.compile(r"(?<=\d)[^a-z0-9]+(?=\d)")
_PARTS = re.compile(r"[a-z]+|\d+")


def plain(name: str) -> str:
    """A name without case, spaces, punctuation, marks of trade and the clock that a system adds to it.

    Between two digits any punctuation is a dot: OPT-1.3B is not OPT-13B.

    >>> plain("GTX-1080"), plain("Intel(R) Core(TM) i7-6700K CPU @ 4.00GHz"), plain("opt_1_3b")
    ('gtx1080', 'intelcorei7.6700k', 'opt1.3b')
    """
    name = name[:LONGEST]
    bare = _MARKS.sub(" ", name)
    if bare != name:  # "Xeon(R) CPU E5-2630 v3"; without such marks the word is part of the name
        bare = _CPU.sub(" ", bare)
    return re.sub(r"[^a-z0-9.]|(?<!\d)\.|\.(?!\d)", "", _BETWEEN.sub(".", bare.lower()))


class AmbiguousName(UnknownName):
    """A name that several devices, networks or stacks bear; the message lists them."""

    def __init__(self, what: str, name: str, candidates: Sequence[str], hint: str = "") -> None:
        super().__init__(what, name, candidates, near=candidates)
        self.candidates = tuple(candidates)
        *most, last = candidates
        said = f"{what} {name!r} is ambiguous; it could be {', '.join(most)} or {last}"
        self.args = (said + (f"; {hint}" if hint else ""),)


def resolve(
    what: str, name: str, ids: Sequence[str], aliases: Callable[[], Mapping[str, Iterable[str]]], hint: str = "",
    makers: Callable[[], Iterable[str]] = tuple,
) -> str:  # fmt: skip
    """The id that a name stands for.

    ids: exact names, which win over everything
    aliases: other names of each id; asked for only where no id is spelled so
    makers: words that may stand before any name ("NVIDIA GTX 1080")

    Raises AmbiguousName where several ids have the alias, UnknownName with the nearest names where none has it.

    >>> resolve("network", "ResNet-50", ["resnet_50", "vgg_16"], lambda: {"vgg_16": ["VGG-D"]})
    'resnet_50'
    """
    if name in ids:
        return name
    spelled = {plain(known): known for known in reversed(ids)}
    wanted = plain(name)
    if wanted in spelled:
        return spelled[wanted]
    others = aliases()
    bare = next((wanted.removeprefix(plain(maker)) for maker in makers() if wanted.startswith(plain(maker))), wanted)
    for spelling in dict.fromkeys((wanted, bare)):
        if spelling in spelled:
            return spelled[spelling]
        found = sorted({known for known, texts in others.items() for text in texts if spelling and plain(text) == spelling})
        if len(found) == 1:
            return found[0]
        if found:
            raise AmbiguousName(what, name, found)
    raise UnknownName(what, name, ids, hint=hint, near=nearest_names(name, ids, others))


def nearest_names(name: str, ids: Sequence[str], aliases: Mapping[str, Iterable[str]], count: int = 3) -> list[str]:
    """The ids with a name or alias that has all words of `name` in its order, shortest first; then those that look most like it.

    >>> nearest_names("resnet", ["resnet_101", "resnet_50", "vgg_16"], {})
    ['resnet_50', 'resnet_101']
    """
    spelled: dict[str, str] = {}
    for known in ids:
        for text in (known, *aliases.get(known, ())):
            spelled.setdefault(plain(text), known)
    wanted, words = plain(name), _PARTS.findall(plain(name))
    holding = [text for text in spelled if words and _in_order(words, _PARTS.findall(text))]
    close = difflib.get_close_matches(wanted, list(spelled), n=3 * count, cutoff=0.6)
    return list(dict.fromkeys(spelled[text] for text in (*sorted(holding, key=len), *close)))[:count]


def _in_order(words: Sequence[str], among: Iterable[str]) -> bool:
    rest = iter(among)
    return all(word in rest for word in words)
