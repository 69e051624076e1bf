"""The text of a protobuf message, as Caffe's network files are: `name: value` and `name { ... }`, any number of times each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from archsim.base.errors import InputError
from archsim.base.limits import LIMITS
from archsim.trace.dims import short

LIMIT = LIMITS["prototxt"]
TOKEN = re.compile(r"""\s+|\#[^\n]*|(?P<word>[A-Za-z_][\w.\[\]/-]*)|(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?f?)
                       |(?P<text>"(?:[^"\\\n]++|\\.)*+"|'(?:[^'\\\n]++|\\.)*+')
                       |(?P<mark>[{}:<>;,\[\]])""", re.VERBOSE)  # fmt: skip
LONGEST_NUMBER = 40

Message = dict[str, list[Any]]


def parsed(text: str, path: str) -> Message:
    """The message of a text. Raises InputError with the line."""
    return _Reader(text, path).message(0, top=True)


class _Reader:
    """Tokens, one after the other."""

    def __init__(self, text: str, path: str) -> None:
        self.text, self.path, self.at, self.count = text, path, 0, 0
        self.tokens = self._tokens()
        self.now = next(self.tokens)

    def _tokens(self) -> Iterator[tuple[str, str]]:
        while self.at < len(self.text):
            found = TOKEN.match(self.text, self.at)
            if found is None:
                raise self._error(f"is no text of a protobuf message: {short(self.text[self.at : self.at + 20])}")
            if found.lastgroup:
                yield found.lastgroup, found[0]
            self.at = found.end()
        yield "end", ""

    def _error(self, problem: str) -> InputError:
        return InputError(self.path, f"line {self.text.count(chr(10), 0, self.at) + 1}: {problem}")

    def _next(self) -> tuple[str, str]:
        held, self.now = self.now, next(self.tokens, ("end", ""))
        return held

    def message(self, depth: int, top: bool = False) -> Message:
        """Fields up to the closing brace, or the end."""
        if depth > LIMIT.depth:
            raise self._error(f"is nested more than {LIMIT.depth} deep")
        found: Message = {}
        while True:
            kind, word = self._next()
            if (kind == "end" and top) or (word in ("}", ">") and kind == "mark" and not top):
                return found
            if word in (";", ","):
                continue
            if kind != "word":
                raise self._error(f"has {short(word) if word else 'an end'} where the name of a field should be")
            self.count += 1
            if self.count > LIMIT.entries:
                raise self._error(f"has more than {LIMIT.entries} fields; refused")
            found.setdefault(word, []).extend(self._values(depth))

    def _values(self, depth: int) -> list[Any]:
        if self.now == ("mark", ":"):
            self._next()
        if self.now[1] in ("{", "<") and self.now[0] == "mark":
            self._next()
            return [self.message(depth + 1)]
        if self.now == ("mark", "["):
            self._next()
            found = []
            while self.now != ("mark", "]"):
                if self.now != ("mark", ","):
                    found.append(self._value())
                else:
                    self._next()
            self._next()
            return found
        return [self._value()]

    def _value(self) -> Any:
        kind, word = self._next()
        if kind == "number":
            if len(word) > LONGEST_NUMBER:
                raise self._error(f"has a number of {len(word)} digits")
            plain = word.rstrip("f")
            return int(plain) if re.fullmatch(r"[-+]?\d+", plain) else float(plain)
        if kind == "text":
            return word[1:-1]
        if kind == "word":
            return {"true": True, "false": False}.get(word, word)
        raise self._error(f"has {short(word) if word else 'an end'} where a value should be")
