"""The state of the page as commands, which give the same numbers."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from archsim.base.values import parts
from archsim.render.html import escaped
from archsim.ui.estimates import USUAL
from archsim.ui.state import MODELS, PageState


def export(state: PageState) -> str:
    """How to run it elsewhere."""
    commands = [plain_command("llm" if state.view is MODELS else "estimate", state)]
    if state.settings and state.view is not MODELS:
        commands.insert(0, whatif_command(state))
    own = [state.title(name) for name in (state.net, state.hw) if name in state.files]
    said = f"{' and '.join(own)}: your own, which the command looks for in the folder where it runs." if own else ""
    return (f"<h2>Run it elsewhere</h2>\n<pre>{'<br>'.join(map(escaped, commands))}</pre>\n"
            f'<p class="quiet">{escaped(said)}</p>')  # fmt: skip


def whatif_command(state: PageState) -> str:
    """The command that prints the same change."""
    to = [(("--to" if key in state.view.tuned else "--set"), f"{key}={value}") for key, value in state.settings.items()]
    return _joined("whatif", state, to)


def plain_command(command: str, state: PageState) -> str:
    """The command that estimates what is changed alone: `estimate`, or `llm` of a language model."""
    given = [*((name.replace("_", "-"), value) for name, value in state.tuned.items()),
             *(("set", f"{key}={value}") for key, value in state.of_device.items())]  # fmt: skip
    return _joined(command, state, [(f"--{name}", value) for name, value in given])


def _joined(command: str, state: PageState, more: Iterable[tuple[str, str]]) -> str:
    words = ["archsim", command, "--net", state.title(state.net), "--hw", state.title(state.hw)]
    for name, value in {**(USUAL if state.view is MODELS else {}), **state.arguments}.items():
        row = state.view.arguments[name]
        if row.kind == "flag":
            words += [row.option] if row.read(value) else []
            continue
        for one in parts(value) if row.kind == "sizes" else [value]:
            words += [row.option, one]
    return shlex.join([*words, *(word for pair in more for word in pair)])
