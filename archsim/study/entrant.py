"""Who takes part in a comparison: every device with every stack that was asked for, under names that tell them apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from archsim.device.spec import Spec
from archsim.device.variant import called
from archsim.stack import catalog, choose


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrant:
    """A device with a stack, before it is asked: `name` and `stack` as given, `device` and `called` as they are shown."""

    name: str
    stack: str | None
    stack_id: str | None
    spec: Spec
    device: str
    called: str


def stacks_meant(stacks: Sequence[str], specs: Sequence[Spec]) -> dict[str, tuple[str | None, str]]:
    """The stacks that names mean on any of the devices: id -> (name for a request, kind of device or "" if named exactly).

    A framework alone may mean several stacks, which are all asked of the devices of their kind.
    """
    found: dict[str, tuple[str | None, str]] = {}
    for name in stacks:
        for spec in specs:
            stack = choose.chosen(name, spec.kind, spec.identity.default_stack)
            of_kind = "" if stack == name else catalog.find(stack).kind
            if of_kind in ("", "any", spec.kind) or len({s.kind for s in specs}) == 1:
                found.setdefault(catalog.find(stack).id, (stack, of_kind))
    return found


def entrants(specs: dict[str, Spec], choices: Mapping[str, tuple[str | None, str]]) -> list[Entrant]:
    """Every device with every stack, each once, under names that tell them apart."""
    once = {(spec.identity.id, spec.digest): name for name, spec in reversed(specs.items())}
    kept = sorted(once.values(), key=list(specs).index)
    own = [called(specs[name], short=True) for name in kept]
    shown = {name: c if own.count(c) == 1 else f"{c} ({name})" for name, c in zip(kept, own, strict=True)}
    return [
        Entrant(name=name, stack=stack, stack_id=identity or None, spec=specs[name], device=shown[name],
                called=shown[name] if len(choices) < 2 else f"{shown[name]} {identity}")
        for name in kept for identity, (stack, kind) in (choices or {"": (None, "")}).items()
        if kind in ("", "any", specs[name].kind) or len({spec.kind for spec in specs.values()}) == 1
    ]  # fmt: skip
