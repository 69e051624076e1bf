"""The state of the page as commands and as a study file, which give the same numbers."""

from __future__ import annotations

import json
import shlex
from base64 import b64encode
from collections.abc import Mapping

from archsim.base.values import parts
from archsim.report.markup import text
from archsim.study.whatif import Change
from archsim.ui.estimates import USUAL
from archsim.ui.form import knobs
from archsim.ui.state import MODELS, PageState, plain


def export(state: PageState, c: Change | None = None) -> str:
    """How to run it elsewhere: commands, and for a change of a network a study file."""
    commands = [llm_command(state)] if state.view is MODELS else [whatif_command(state)]
    if state.settings and state.view is not MODELS:
        commands += [estimate_command(state), sweep_command(state)]
    parts = [f"<h2>Run it elsewhere</h2>\n<pre>{_lines(commands)}</pre>"]
    own = [state.title(name) for name in (state.net, state.hw) if name in state.files]
    if own:
        said = f"{' and '.join(own)}: your own, which the command looks for in the folder where it runs."
        parts.append(f'<p class="quiet">{text(said)}</p>')
    if c is not None and state.settings:
        study = study_text(state, c)
        packed = b64encode(study.encode()).decode("ascii")
        parts.append(f'<details><summary>As a study file</summary><pre>{_lines(study.splitlines())}</pre></details>\n'
                     f'<p class="data"><a download="study.toml" href="data:text/plain;base64,{packed}">study.toml</a>: '
                     "archsim study study.toml --out FOLDER</p>")  # fmt: skip
    return "\n".join(parts)


def _lines(listed: list[str]) -> str:
    """Lines of code: each is escaped on its own, because control characters do not survive."""
    return "\n".join(map(text, listed))


def whatif_command(state: PageState) -> str:
    """The command that prints the same change; the estimate alone where nothing is changed."""
    words = ["archsim", "whatif" if state.settings else "estimate", *_asked(state)]
    for key, value in state.settings.items():
        words += ["--to" if key in state.view.tuned else "--set", f"{key}={value}"]
    return shlex.join(words)


def estimate_command(state: PageState) -> str:
    """The command that estimates the changed device alone."""
    return shlex.join(["archsim", "estimate", *_asked(state), *_changed(state)])


def llm_command(state: PageState) -> str:
    """The command that estimates the model on the changed device."""
    return shlex.join(["archsim", "llm", *_asked(state), *_changed(state)])


def sweep_command(state: PageState) -> str:
    """Every combination of each value before and after; empty where nothing is changed."""
    before = {one.key: plain(one.value, one.unit.unit) for one in knobs(state)}
    words = ["archsim", "sweep", *_asked(state)]
    for key, value in state.settings.items():
        values = [before[key], value] if key in before and before[key] != value else [value]
        words += ["--vary", f"{key}={','.join(one.replace(' ', '') for one in values)}"]
    return shlex.join(words) if state.settings else ""


def _asked(state: PageState) -> list[str]:
    words = ["--net", state.title(state.net), "--hw", state.title(state.hw)]
    for name, value in {**(USUAL if state.view is MODELS else {}), **state.arguments}.items():
        row = state.view.arguments[name]
        if row.kind == "flag":
            words += [row.option] if row.read(value) else []
            continue
        for one in parts(value) if row.kind == "sizes" else [value]:
            words += [row.option, one]
    return words


def _changed(state: PageState) -> list[str]:
    """Arguments that are changed as options of their own, values of the device by `--set`."""
    words = []
    for key, value in state.settings.items():
        words += [state.view.arguments[key].option, value] if key in state.view.tuned else ["--set", f"{key}={value}"]
    return words


def study_text(state: PageState, c: Change) -> str:
    """A study of the change, for `archsim study FILE`; the precision is written out, because a study takes fp32 otherwise."""
    net, hw = state.title(state.net), state.title(state.hw)
    chosen = {name: state.view.arguments[name].read(value) for name, value in state.arguments.items()}
    asked = {**chosen, **{name: getattr(c.before, name) for name in ("batch", "precision", "task", "stack")}}
    lines = [
        "schema = 1", f"title = {_quoted(f'What if: {net} on {hw}')}",
        f"question = {_quoted('What changes with ' + ', '.join(state.words) + '?')}", "", "[[part]]", 'kind = "whatif"',
        'name = "change"', f"title = {_quoted(f'{net} on {hw}')}", f"net = [{_quoted(net)}]", f"hw = [{_quoted(hw)}]",
        *(f"{name} = {_quoted(value)}" for name, value in asked.items()),
        _table("change", state.of_device), _table("to", state.tuned),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _table(name: str, pairs: Mapping[str, str]) -> str:
    return f"{name} = {_quoted(dict(pairs))}"


def _quoted(value: object) -> str:
    """A value of TOML: texts have the escapes of JSON."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_quoted(key)} = {_quoted(one)}' for key, one in value.items())} }}"
    return json.dumps(value)
