"""What a shell completes of the values of options: names from catalogs, keys of a device, and words before an `=`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click
from click.shell_completion import CompletionItem

from archsim.base.arguments import ARGUMENTS
from archsim.study.names import are_files, names_of


class Known(click.ParamType):  # type: ignore[type-arg]  # earlier versions of click have no argument
    """A text whose usual values a shell completes: those of a catalog; `many` of them with commas between."""

    name = "text"

    def __init__(self, what: str, *, many: bool = False) -> None:
        self.what, self.many = what, many

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The text as it is; what it means is found out where it is used."""
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The names that begin so, or the files of the shell where a path begins."""
        done, _, last = incomplete.rpartition(",") if self.many else ("", "", incomplete)
        if are_files(self.what) and ("/" in last or last.startswith(".")) and not done:
            return [CompletionItem(last, type="file")]
        prefix = f"{done}," if done else ""
        given = set(done.split(",")) if done else set()
        return items((name for name in names_of(self.what) if name not in given), last, prefix)


class Shown(Known):
    """The name of a thing whose kind is the argument before it: `show hw NAME`."""

    def __init__(self) -> None:
        super().__init__("")

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The names of that kind."""
        what = {"hw": "device", "node": "node", "net": "network", "stack": "stack"}.get(str(ctx.params.get("what")))
        return [] if what is None else Known(what).shell_complete(ctx, param, incomplete)


class Keyed(click.ParamType):  # type: ignore[type-arg]
    """A text KEY=VALUE whose keys are `more` words, and those of a device."""

    name = "text"

    def __init__(self, *more: str, device: bool = True) -> None:
        self.more, self.device = more, device

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text as it is."""
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Keys up to the `=`, then the words that an argument of that name takes."""
        key, separator, value = incomplete.partition("=")
        if separator:
            row = ARGUMENTS.get(key) if key in self.more else None
            return items(row.choices or names_of(row.names), value, f"{key}=") if row and (row.names or row.choices) else []
        own: dict[str, None] = {}
        if self.device:
            from archsim.device.spec import keys

            own = {name: None for kind in ("gpu", "cpu", "tpu") for name, _, _ in keys(kind)}
        return items((f"{name}=" for name in (*self.more, *own)), incomplete)


def items(names: Iterable[str], begun: str, prefix: str = "") -> list[CompletionItem]:
    """The names that begin so, with what stands before them; case and separators of what is begun do not matter."""
    listed = [*names]
    exact = [name for name in listed if name.startswith(begun)]
    alike = begun.lower().replace("-", "_").replace(" ", "_")
    return [CompletionItem(f"{prefix}{name}") for name in exact or [name for name in listed if name.startswith(alike)]]
