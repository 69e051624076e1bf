"""Which stack a user means who names a framework ("TensorFlow"), a library ("cuDNN 5.1"), or both ("Caffe with cuDNN 5.1").

Such a name leaves open what else the stack is composed of. The device decides: its usual stack if that fits the name, else the
one with the same library in the same or the nearest version. Where this leaves several, the error lists them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from typing import Any

from archsim.base.errors import ArgumentError, UnknownName, one_of
from archsim.base.files import is_path
from archsim.base.naming import AmbiguousName, plain
from archsim.stack.catalog import by_name_only, canonical, composition, find, names, rows_of
from archsim.stack.compose import part_aliases, part_versions
from archsim.stack.key import declared, read
from archsim.stack.parts import LEVELS, SampleReader
from archsim.stack.stack import Stack

_UNIT = re.compile(r"([a-z]+)[ v.]*(\d+(?:\.\d+)*)?")
DECODED = "decoded"
PLACES = ("device", "host", DECODED)  # where a GPU finds a batch
_FILLERS = ("with", "and", "on", "using", "plus")


def chosen(name: str, kind: str, usual: str) -> str:
    """The id or path of the stack that `name` means on a device of this kind whose usual stack is `usual`.

    Raises AmbiguousName, or UnknownName with the nearest names.

    >>> chosen("TensorFlow", "gpu", "torch7-cudnn5.1"), chosen("Caffe", "cpu", "torch7-cpu")
    ('tensorflow-cudnn5.1', 'caffe-openblas')
    """
    if name in names() or is_path(name):
        return name
    fitting = candidates(name, kind)
    if _fits(usual, name):
        return usual
    try:
        spelled = canonical(name)
    except UnknownName:
        fitting = fitting or candidates(name)[:1]  # of the other kind, which the request refuses in its own words
        if not fitting:
            raise
    else:
        if not fitting or _parts(spelled)[1] in (kind, "any"):
            return spelled
    return _nearest_version(name, fitting, usual)


def named(name: str) -> str:
    """The id or path of the only stack that a name can mean on any device. Raises AmbiguousName or UnknownName."""
    try:
        return canonical(name)
    except UnknownName:
        found = candidates(name)
        if len(found) > 1:
            raise AmbiguousName("stack", name, found) from None
        if not found:
            raise
        return found[0]


def candidates(name: str | None, kind: str = "") -> list[str]:
    """The stacks (for a kind of device) that have all that a name names, or all.

    Those that differ from another by a setting are left out.
    """
    by_parts: dict[tuple[tuple[str, str], ...], str] = {}
    for known in sorted(names(), key=len):  # `torch7-cudnn5.1` stands before `torch7-cudnn5.1-frugal`, which has the same parts
        parts, of_kind = _parts(known)
        if (name is None or _fits(known, name)) and kind in ("", of_kind) and not by_name_only(known):
            by_parts.setdefault(tuple(sorted(parts.items())), known)
    return sorted(by_parts.values())


def _fits(stack: str, name: str) -> bool:
    """Whether a shipped stack has all that a name names."""
    if stack not in names():
        return False
    wanted, named = _units(name), _named(stack)
    return plain(name) in named or (bool(wanted) and wanted <= named)


def _nearest_version(name: str, fitting: Sequence[str], usual: str) -> str:
    """Of several stacks the one that is nearest to a device's usual one; AmbiguousName where that is several."""
    left, own = list(fitting), _parts(usual)[0] if usual in names() else {}
    for axis in ("library", "blas"):
        library, _, version = own.get(axis, "").partition(" ")
        same = [known for known in left if _parts(known)[0].get(axis, "").partition(" ")[0] == library]
        if not library or not same:
            continue
        order = {text: place for place, text in enumerate(part_versions(axis, library))}
        steps = {known: order.get(_parts(known)[0][axis].partition(" ")[2], 0) - order.get(version, 0) for known in same}
        nearest = min(steps.values(), key=lambda step: (abs(step), step))  # of two as near the earlier
        left = [known for known in same if steps[known] == nearest]
    if len(left) > 1:
        raise AmbiguousName("stack", name, left)
    return left[0]


@cache
def _parts(stack: str) -> tuple[Mapping[str, str], str]:
    """What a stack is composed of, and the kind of device that it is for."""
    found = composition(stack)
    return found.parts, str(found.table().get("kind", ""))


@cache
def _named(stack: str) -> frozenset[str]:
    """All names of a stack's parts: each with its version and without."""
    found: set[str] = set()
    for axis, reference in _parts(stack)[0].items():
        part, _, version = reference.partition(" ")
        for text in (part, *part_aliases(axis, part)):
            found |= {plain(text), f"{plain(text)}{version}"}
    return frozenset(found)


def _units(name: str) -> set[str]:
    """What a name names: its words without fillers, each with the version behind it."""
    text = " ".join(word for word in re.split(r"[\s+/,&_-]+", name.lower()) if word not in _FILLERS)
    return {f"{word}{version}" for word, version in _UNIT.findall(text)}


def fused(name: str, architecture: str, rule: str | None) -> Stack:
    """The stack on an architecture, with a rule of fusion in place of its own. Raises UnknownName for another rule."""
    if rule is None:
        return find(name, architecture)
    one_of("fusion", rule, LEVELS)
    own = find(name, architecture)
    return own if own.fusion.rule == rule else find(name, architecture, rule)


def of_today(stack: Stack, rule: str | None) -> list[str]:
    """What an answer says of a rule of fusion that was asked for, and of a stack that nobody measured."""
    said = [] if rule is None else [f"fusion {rule}: in place of what {stack.id} does; `archsim show stack {stack.id}`"]
    if not (rows := rows_of(stack)).own:
        said.append(f"{rows.words}; intervals are wider")
    return said


def searching(stack: Stack, kind: str = "gpu") -> Stack:
    """The stack with a library that times its kernels for each convolution and takes the fastest, as `cudnn.benchmark` asks.

    Raises ArgumentError for another kind of device than a GPU.
    """
    if kind != "gpu":
        raise ArgumentError(f"search belongs to a GPU; libraries of a {kind.upper()} are not modelled with one")
    return replace(stack, conv=replace(stack.conv, searched=True))


def with_inputs(stack: Stack, inputs: str, device: str, kind: str) -> Stack:
    """The stack with its batches in device memory, the host's, or decoded by the host: `decoded,workers=8,stored=array`.

    What follows `decoded` are keys of the stack's `reader`. Raises ArgumentError for another place, another key, and for a CPU.
    """
    place, *words = (word.strip() for word in inputs.split(","))
    if place not in PLACES:
        raise ArgumentError(f"inputs {inputs!r} is not one of {', '.join(PLACES)}")
    if kind != "gpu":
        reads = "reads them where they are" if kind == "cpu" else "is taken to have them already"
        raise ArgumentError(f"inputs belong to a GPU; the {kind.upper()} {device} {reads}")
    if words and place != DECODED:
        raise ArgumentError(f"inputs {inputs!r}: {place} takes no keys; those of a reader follow decoded, like decoded,workers=8")
    reader = _reader(stack.reader, words, inputs)
    if place == stack.inputs and reader == stack.reader:
        return stack
    return replace(stack, inputs=place, reader=reader)


def _reader(own: SampleReader, words: Sequence[str], inputs: str) -> SampleReader:
    """The reader with the keys that words like `workers=8` set."""
    given: dict[str, Any] = {}
    for word in words:
        name, separator, value = (part.strip() for part in word.partition("="))
        if not separator or name in given:
            said = "is given twice" if name in given else "is not KEY=VALUE"
            raise ArgumentError(f"inputs {inputs!r}: {word!r} {said}; keys: {', '.join(declared(SampleReader))}")
        given[name] = int(value) if re.fullmatch(r"[0-9]{1,15}", value) else value
    found, problems = read(SampleReader, asdict(own) | given)
    if found is None:
        raise ArgumentError(f"inputs {inputs!r}: {'; '.join(problems)}")
    return found
