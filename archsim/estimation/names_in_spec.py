"""Names that a spec file gives in its words: another file must have them, or the model must know them."""

from __future__ import annotations

from archsim.base.errors import ArchsimError, InputError
from archsim.detect import catalog as devices
from archsim.device.catalog import architectures, is_shipped
from archsim.device.silicon import silicon
from archsim.device.spec import Spec
from archsim.stack import catalog as stacks

SET = "what-if"  # the file of a value that --set gives


def check_names(spec: Spec, stack: str | None, host_cpu: str | None) -> None:
    """Raises InputError, by file and key, for a name in the words of a user's spec that leads nowhere.

    `default_stack` and `launch.host_cpu` count where no `stack` and no `host_cpu` was asked for. Shipped specs are tested.
    """
    if is_shipped(spec):
        return
    problems = {} if spec.kind == "tpu" else {"memory.type": _memory_problem(spec)}  # no model reads that of a TPU
    if host_cpu is None and spec.kind != "cpu":
        problems["launch.host_cpu"] = _cpu_problem(str(spec.entries["launch.host_cpu"].value))
    if spec.identity.faster:
        problems["faster"] = _cpu_problem(spec.identity.faster)
    if stack is None:
        problems["default_stack"] = _stack_problem(spec)
    said = {key: problem for key, problem in problems.items() if problem}
    if said:
        given = all(key in spec.entries and spec.entries[key].file == SET for key in said)
        raise InputError("--set" if given else spec.path, [f"{key}: {problem}" for key, problem in said.items()])


def architecture_notes(spec: Spec) -> list[str]:
    """What is said of an architecture that the model does not know."""
    identity = spec.identity
    if not identity.like:
        return []
    if spec.kind == "cpu":
        return [f"architecture {identity.architecture}: no known one; the model of a CPU reads only the values of its spec"]
    return [f"architecture {identity.architecture}: not one of {', '.join(architectures(spec.kind))}; libraries are taken to run "
            f"their kernels for the nearest, {identity.like}"]


def _memory_problem(spec: Spec) -> str:
    written = spec.device.memory.type
    return "" if silicon().family(written) else f"{written!r} is no family of memory that is known: {', '.join(silicon().memory)}"


def _cpu_problem(name: str) -> str:
    try:
        found = devices.find(name)
    except ArchsimError as error:
        return str(error)
    return "" if found.kind == "cpu" else f"{found.identity.id} is no CPU"


def _stack_problem(spec: Spec) -> str:
    try:
        found = stacks.find(spec.identity.default_stack)
    except ArchsimError as error:
        return str(error)
    return "" if found.kind in ("any", spec.kind) else f"stack {found.id} is for a {found.kind}, not a {spec.kind}"
