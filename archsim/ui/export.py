"""The state of the page as commands and as a study file, which give the same numbers."""

from __future__ import annotations

import json
import shlex
from base64 import b64encode
from collections.abc import Iterable

from archsim.base.values import parts
from archsim.render.html import escaped
from archsim.study.whatif import Change
from archsim.ui.estimates import USUAL
from archsim.ui.form import knobs
from archsim.ui.state import MODELS, PageState, plain


def export(state: PageState, c: Change | None = None) -> str:
    """How to run it elsewhere: commands, and for a change of a network a study file."""
    commands = [plain_command("llm" if state.view is MODELS else "estimate", state)]
    if state.settings and state.view is not MODELS:
        commands = [whatif_command(state), *commands, sweep_command(state)]
    parts = [f"<h2>Run it elsewhere</h2>\n<pre>{_lines(commands)}</pre>"]
    own = [state.title(name) for name in (state.net, state.hw) if name in state.files]
    if own:
        said = f"{' and '.join(own)}: your own, which the command looks for in the folder where it runs."
        parts.append(f'<p class="quiet">{escaped(said)}</p>')
    if c is not None and state.settings:
        study = study_text(state, c)
        packed = b64encode(study.encode()).decode("ascii")
        parts.append(f'<details><summary>As a study file</summary><pre>{_lines(study.splitlines())}</pre></details>\n'
                     f'<p class="data"><a download="study.toml" href="data:text/plain;base64,{packed}">study.toml</a>: '
                     "archsim study study.toml --out FOLDER</p>")  # fmt: skip
    return "\n".join(parts)


def _lines(listed: list[str]) -> str:
    """Lines of code: each is escaped on its own, because control characters do not survive."""
    return "\n".join(map(escaped, listed))


def whatif_command(state: PageState) -> str:
    """The command that prints the same change."""
    to = [(("--to" if key in state.view.tuned else "--set"), f"{key}={value}") for key, value in state.settings.items()]
    return _joined("whatif", state, to)


def plain_command(command: str, state: PageState) -> str:
    """The command that estimates what is changed alone: `estimate`, or `llm` of a language model."""
    given = [*((name.replace("_", "-"), value) for name, value in state.tuned.items()),
             *(("set", f"{key}={value}") for key, value in state.of_device.items())]  # fmt: skip
    return _joined(command, state, [(f"--{name}", value) for name, value in given])


def sweep_command(state: PageState) -> str:
    """Every combination of each value before and after."""
    before = {one.key: plain(one.value, one.unit.unit) for one in knobs(state)}
    varied = [(key, dict.fromkeys((before.get(key, value), value))) for key, value in state.settings.items()]
    return _joined("sweep", state, [("--vary", f"{key}={','.join(values)}".replace(" ", "")) for key, values in varied])


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


def study_text(state: PageState, c: Change) -> str:
    """A study of the change, for `archsim study FILE`; the precision is written out, because a study takes fp32 otherwise."""
    net, hw = state.title(state.net), state.title(state.hw)
    chosen = {name: state.view.arguments[name].read(value) for name, value in state.arguments.items()}
    whole = {"schema": 1, "title": f"What if: {net} on {hw}", "question": f"What changes with {', '.join(state.words)}?"}
    part = {
        "kind": "whatif", "name": "change", "title": f"{net} on {hw}", "net": [net], "hw": [hw], **chosen,
        **{name: getattr(c.before, name) for name in ("batch", "precision", "task", "stack")},
        "change": state.of_device, "to": state.tuned,
    }  # fmt: skip
    written = ["\n".join(f"{name} = {_toml(value)}" for name, value in table.items()) for table in (whole, part)]
    return "\n\n[[part]]\n".join(written) + "\n"


def _toml(value: object) -> str:
    """A value of TOML; texts, numbers and lists are those of JSON."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{json.dumps(key)} = {_toml(one)}' for key, one in value.items())} }}"
    return json.dumps(value)
