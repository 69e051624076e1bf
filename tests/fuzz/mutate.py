"""Changes of texts and bytes: blind ones, and ones that know numbers, quoted words, lines and JSON."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

VALUES: dict[str, Any] = tomllib.loads(Path(__file__).with_name("values.toml").read_text("utf-8"))
NUMBERS = (*VALUES["numbers"], "9" * 400)
UNITS: tuple[str, ...] = tuple(VALUES["units"])
WORDS = (*VALUES["words"], "a" * 300, "\ud800", "\udcff")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_QUOTED = re.compile(r'"[^"\n]*"')
MOST = 1 << 17  # characters; larger inputs only take time

Text = Callable[[str, Random], str]


def number(random: Random) -> str:
    """A number that is at an edge, or any."""
    kind = random.random()
    if kind < 0.7:
        return random.choice(NUMBERS)
    return str(random.randrange(1, 4096)) if kind < 0.9 else f"{random.uniform(-1, 1) * 10 ** random.randrange(-20, 20):.6g}"


def word(random: Random) -> str:
    """A word that is at an edge."""
    return random.choice(WORDS) if random.random() < 0.9 else "".join(chr(random.randrange(1, 0x3000)) for _ in range(8))


def _swap_number(text: str, random: Random) -> str:
    return _replaced(text, _NUMBER, lambda old: number(random), random)


def _scale_number(text: str, random: Random) -> str:
    def scaled(old: str) -> str:
        try:
            return f"{float(old) * random.choice((1e-6, 1e-3, 0.1, 0.5, 2, 10, 1e3, 1e6)):.9g}"
        except (ValueError, OverflowError):
            return old

    return _replaced(text, _NUMBER, scaled, random)


def _swap_quoted(text: str, random: Random) -> str:
    def other(old: str) -> str:
        kind = random.random()
        if kind < 0.4:
            return f'"{number(random)} {random.choice(UNITS)}"'
        if kind < 0.7:
            return f'"{word(random)}"'
        return random.choice(_QUOTED.findall(text) or [old])

    return _replaced(text, _QUOTED, other, random)


def _replaced(text: str, pattern: re.Pattern[str], new: Callable[[str], str], random: Random) -> str:
    found = list(pattern.finditer(text))
    if not found:
        return text
    one = random.choice(found)
    return text[: one.start()] + new(one[0]) + text[one.end() :]


def _lines(text: str, random: Random) -> str:
    lines = text.split("\n")
    a, b, kind = random.randrange(len(lines)), random.randrange(len(lines)), random.randrange(5)
    if kind == 0:
        del lines[a]
    elif kind == 1:
        lines.insert(b, lines[a])
    elif kind == 2:
        lines[a], lines[b] = lines[b], lines[a]
    elif kind == 3:
        lines[a] = lines[a][: random.randrange(len(lines[a]) + 1)] + lines[b][random.randrange(len(lines[b]) + 1) :]
    else:
        lines = lines[: a + 1] * random.choice((1, 2, 3))
    return "\n".join(lines)


def _insert(text: str, random: Random) -> str:
    at = random.randrange(len(text) + 1)
    return text[:at] + (word(random) if random.random() < 0.6 else number(random)) + text[at:]


def _cut(text: str, random: Random) -> str:
    a, b = sorted(random.randrange(len(text) + 1) for _ in range(2))
    return text[:a] + text[min(b, a + random.choice((1, 4, 64, 4096))) :]


def _repeat(text: str, random: Random) -> str:
    a, b = sorted(random.randrange(len(text) + 1) for _ in range(2))
    return text[:b] + text[a:b][:200] * random.choice((2, 10, 1000, 20000)) + text[b:]


TEXT: Sequence[Text] = (
    _swap_number, _swap_number, _scale_number, _swap_quoted, _swap_quoted, _lines, _lines, _insert, _cut, _repeat,
)  # fmt: skip


def text_of(seed: str, random: Random) -> str:
    """A changed text: mostly one change, sometimes many."""
    for _ in range(random.choice((1, 1, 1, 1, 2, 2, 3, 8))):
        seed = random.choice(TEXT)(seed, random)[:MOST]
    return seed


def json_value(value: Any, random: Random, depth: int = 0) -> Any:
    """A JSON value with one change somewhere inside."""
    if isinstance(value, dict) and value and random.random() < 0.85:
        key = random.choice(list(value))
        kind = random.random()
        if kind < 0.1:
            return {k: v for k, v in value.items() if k != key}
        if kind < 0.2:
            return value | {random.choice([word(random), *value]): value[key]}
        return value | {key: json_value(value[key], random, depth + 1)}
    if isinstance(value, list) and value and random.random() < 0.85:
        at, kind = random.randrange(len(value)), random.random()
        if kind < 0.1:
            return value[:at] + value[at + 1 :]
        if kind < 0.2:
            return value[:at] + [value[at]] * random.choice((2, 3, 50)) + value[at:]
        return [*value[:at], json_value(value[at], random, depth + 1), *value[at + 1 :]]
    return random.choice((
        0, 1, -1, 2, 3, 5, 7, 8, 11, 224, 10**6, 2**31, 2**53, 2**53 + 1, 2**63, 0.5, -0.0, 1e308,
        "N", "T", "N*T", "3*N", word(random), None, True, False, [], {}, [[]], [1] * 9,
        ["N", 3, 224, 224], {"a": 1}, [value], {"x": value}, "conv1", "relu1", "data",
    ))  # fmt: skip


def json_lines(seed: str, random: Random) -> str:
    """Lines of JSON, one of them changed in its structure, or the text of it."""
    if random.random() < 0.35:
        return text_of(seed, random)
    lines = seed.rstrip("\n").split("\n")
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        at = random.randrange(len(lines))
        try:
            lines[at] = json.dumps(json_value(json.loads(lines[at]), random))
        except (ValueError, RecursionError):
            lines[at] = text_of(lines[at], random)
    return "\n".join(lines) + "\n"


def bytes_of(seed: bytes, random: Random) -> bytes:
    """Changed bytes: flips, cuts, insertions, repeats, and words at edges."""
    data = bytearray(seed)
    for _ in range(random.choice((1, 1, 2, 4, 16))):
        at = random.randrange(len(data) + 1)
        kind = random.randrange(6)
        if kind == 0 and data:
            data[at % len(data)] ^= 1 << random.randrange(8)
        elif kind == 1 and data:
            data[at % len(data)] = random.choice((0, 1, 0x7F, 0x80, 0xFF, 10, 13, 34))
        elif kind == 2:
            del data[at : at + random.choice((1, 2, 16, 512))]
        elif kind == 3:
            data[at:at] = random.randbytes(random.choice((1, 2, 8, 64)))
        elif kind == 4:
            data[at:at] = data[max(0, at - 64) : at] * random.choice((1, 2, 50))
        else:
            data[at:at] = word(random).encode("utf-8", "surrogatepass")
    return bytes(data[: MOST * 4])
