"""Option values that a shell completes: names of devices, networks and stacks, keys of a device, and words of short lists.

A shell waits for each answer, so that nothing here imports a model: names are those of the files that are shipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import click
from click.shell_completion import CompletionItem

from archsim.base.files import data_folder

FIDELITIES = ("roofline", "analytical", "event", "cycle")  # a test holds that they are those of the models


def files_in(folder: str, suffix: str) -> list[str]:
    """The names of the files of a folder of shipped data, without their suffix, sorted."""
    found = (entry.name for entry in data_folder(folder).iterdir())
    return sorted(name.removesuffix(suffix) for name in found if name.endswith(suffix))


def _devices() -> list[str]:
    return [*files_in("hwspecs", ".toml"), "host"]


def _nodes() -> list[str]:
    return files_in("hwspecs/hosts", ".toml")


def _networks() -> list[str]:
    return files_in("traces/nets", ".jsonl")


def _stacks() -> list[str]:
    from archsim.stack.catalog import names

    return [*names()]


def _models() -> list[str]:
    return files_in("traces/models", ".json")


def _engines() -> list[str]:
    from archsim.generation.plan import engines

    return engines()


def _precisions() -> list[str]:
    from archsim.device.device import PRECISION_BYTES

    return [*PRECISION_BYTES]


def _tasks() -> list[str]:
    from archsim.trace.training import TASKS

    return [*TASKS]


LISTS: dict[str, Callable[[], list[str]]] = {
    "device": _devices, "node": _nodes, "network": _networks, "stack": _stacks, "precision": _precisions, "task": _tasks,
    "fidelity": lambda: [*FIDELITIES], "traffic": lambda: ["closed", "simulated"],
    "optimiser": lambda: ["sgd", "momentum", "adamw"],
    "model": _models, "engine": _engines,
    "devices": lambda: ["all", "gpu", "cpu", "tpu", *_devices()],
}  # fmt: skip
VARIED = ("batch", "seq_len", "clock", "memory_clock", "power_limit", "threads", "precision", "task", "stack")  # not of a spec
FROM_FILES = ("device", "devices", "node", "network", "stack", "model")  # whose names may also be paths


class Known(click.ParamType):  # type: ignore[type-arg]  # earlier versions of click have no argument
    """A text whose usual values a shell completes: those of `LISTS[what]`; `many` of them with commas between."""

    name = "text"

    def __init__(self, what: str, *, many: bool = False) -> None:
        self.what, self.many = what, many

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text as it is; what it means is found out where it is used."""
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The names that begin so, or the files of the shell where a path begins."""
        done, _, last = incomplete.rpartition(",") if self.many else ("", "", incomplete)
        if self.what in FROM_FILES and ("/" in last or last.startswith(".")) and not done:
            return [CompletionItem(last, type="file")]
        prefix = f"{done}," if done else ""
        given = set(done.split(",")) if done else set()
        return items((name for name in LISTS[self.what]() if name not in given), last, prefix)


class Shown(Known):
    """The name of a thing whose kind is the argument before it: `show hw NAME`."""

    def __init__(self) -> None:
        super().__init__("")

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The names of that kind."""
        what = {"hw": "device", "node": "node", "net": "network", "stack": "stack"}.get(str(ctx.params.get("what")))
        return [] if what is None else Known(what).shell_complete(ctx, param, incomplete)


class Keyed(click.ParamType):  # type: ignore[type-arg]
    """A text KEY=VALUE whose keys are those of the device that is named before it."""

    name = "text"

    def __init__(self, *more: str, device: bool = True) -> None:
        self.more, self.device = more, device

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text as it is."""
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Keys up to the `=`, then the words of a list, where the key has one."""
        key, separator, value = incomplete.partition("=")
        if separator:
            words = {"hw": "device", "net": "network"}.get(key, key)
            return items(LISTS[words](), value, f"{key}=") if words in LISTS and key in self.more else []
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
