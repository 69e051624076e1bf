"""The keys of a `config.json`: every number is checked, and every problem names its key."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from archsim.trace.dims import short

WIDTH = ("hidden_size", "n_embd", "dim", "d_model", "n_embed")  # what files call a number, the usual name first
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
KV_HEADS = ("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num")
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
HIDDEN = ("intermediate_size", "ffn_dim", "n_inner", "hidden_dim", "ffn_hidden_size", "d_ff", "ff_intermediate_size")
DENSE = "intermediate_size_mlp"  # of layers without experts, in files in which `intermediate_size` is that of an expert
SIZES = frozenset((*WIDTH, *HEADS, *KV_HEADS, *LAYERS, *HIDDEN, DENSE, "vocab_size"))


class ConfigKeys:
    """The keys of a file, read with their ranges; what is wrong is collected, and a number stands in for it."""

    def __init__(self, words: Mapping[str, Any], defaults: Mapping[str, int] | None = None, *, part: bool = False) -> None:
        self.words, self.defaults, self.part = words, defaults or {}, part
        self.problems: list[str] = []
        self.taken: list[str] = []

    def whole(self, names: str | Sequence[str], most: int, *, least: int = 1, default: int | None = None) -> int:
        """A whole number under the first of these names that the file has, else the family's default, else `default`.

        The size of a whole model has no default of its family: a file that does not say it is not complete.
        """
        names = (names,) if isinstance(names, str) else tuple(names)
        found = next((name for name in names if self.words.get(name) is not None), None)
        if found is not None:
            return self.checked(found, self.words[found], least, most)
        usual = next((name for name in names if name in self.defaults and (self.part or name not in SIZES)), None)
        if usual is not None and usual not in self.words:
            self.taken.append(usual)
            return self.defaults[usual]
        if default is None:
            self.problems.append(f"{names[0]}: is missing" + (f" (or {', '.join(names[1:])})" if names[1:] else ""))
        return least if default is None else default

    def checked(self, name: str, value: Any, least: int, most: int) -> int:
        """A value as a whole number in its range."""
        if isinstance(value, bool) or not isinstance(value, int):
            self.problems.append(f"{name}: must be a whole number, is {short(value)}")
        elif not least <= value <= most:
            self.problems.append(f"{name}: must lie in {least}..{most}, is {value}")
        else:
            return value
        return least

    def share(self, names: Sequence[str], default: float) -> float:
        """A number from 0 to below 1."""
        for name in names:
            value = self.words.get(name)
            if value is None:
                continue
            sound = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and 0 <= value < 1
            if not sound:
                self.problems.append(f"{name}: must be a number from 0 to below 1, is {short(value)}")
                return default
            return float(value)
        return default

    def flag(self, name: str, default: bool) -> bool:
        """true or false."""
        value = self.words.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.problems.append(f"{name}: must be true or false, is {short(value)}")
            return default
        return value

    def word(self, names: Sequence[str], choices: Sequence[str], default: str) -> str:
        """One of some words."""
        name = next((name for name in names if self.words.get(name) is not None), None)
        if name is None:
            return default
        value = self.words[name]
        if value not in choices:
            self.problems.append(f"{name}: {short(value)} is not one of {', '.join(choices)}")
            return default
        return str(value)

    def named(self, *names: str) -> str:
        """What this file calls a number."""
        return next((name for name in names if self.words.get(name) is not None), names[0])

    def divides(self, part: str, number: int, whole: str, of: int) -> None:
        """Say so where a number does not divide another, unless one of them is wrong by itself."""
        if number > 0 and of % number and not any(each.startswith((f"{part}:", f"{whole}:")) for each in self.problems):
            self.problems.append(f"{part}: {number} does not divide {whole} {of}")
