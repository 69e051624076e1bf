"""The state of the page as commands and as a study file, which give the same numbers."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping

from archsim.study.whatif import Change
from archsim.ui.form import knobs
from archsim.ui.state import TUNED, PageState, plain

FLAGS = {"clock": "--clock", "power_limit": "--power-limit", "threads": "--threads"}


def whatif_command(state: PageState) -> str:
    """The command that prints the same change; the estimate alone where nothing is changed."""
    words = ["archsim", "whatif" if state.settings else "estimate", *_asked(state)]
    for key, value in state.settings.items():
        words += ["--to", f"{key}={value}"] if key in TUNED else ["--set", f"{key}={value}"]
    return shlex.join(words)


def estimate_command(state: PageState) -> str:
    """The command that estimates the changed device alone."""
    words = ["archsim", "estimate", *_asked(state)]
    for key, value in state.settings.items():
        words += [FLAGS[key], value] if key in TUNED else ["--set", f"{key}={value}"]
    return shlex.join(words)


def sweep_command(state: PageState) -> str:
    """Every combination of each value before and after; empty where nothing is changed."""
    before = {one.key: plain(one.value, one.unit.unit) for one in knobs(state)}
    words = ["archsim", "sweep", *_asked(state)]
    for key, value in state.settings.items():
        values = [before[key], value] if key in before and before[key] != value else [value]
        words += ["--vary", f"{key}={','.join(one.replace(' ', '') for one in values)}"]
    return shlex.join(words) if state.settings else ""


def _asked(state: PageState) -> list[str]:
    pairs = {"net": state.net, "hw": state.hw, **state.choices}
    return [word for name, value in pairs.items() for word in (f"--{name}", value)]


def study_text(state: PageState, c: Change) -> str:
    """A study of the change, for `archsim study FILE`; the precision is written out, because a study takes fp32 otherwise."""
    title = f"{state.net} on {state.hw}"
    asked: dict[str, str | int] = {"batch": c.before.batch, "precision": c.before.precision, "task": c.before.task,
                                   "stack": c.before.stack}  # fmt: skip
    lines = [
        "schema = 1", f"title = {_quoted(f'What if: {title}')}",
        f"question = {_quoted('What changes with ' + ', '.join(state.words) + '?')}", "", "[[part]]", 'kind = "whatif"',
        'name = "change"', f"title = {_quoted(title)}", f"net = [{_quoted(state.net)}]", f"hw = [{_quoted(state.hw)}]",
        *(f"{name} = {_quoted(value) if isinstance(value, str) else value}" for name, value in asked.items()),
        _table("change", {key: value for key, value in state.settings.items() if key not in TUNED}),
        _table("to", {key: value for key, value in state.settings.items() if key in TUNED}),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _table(name: str, pairs: Mapping[str, str]) -> str:
    return f"{name} = {{ {', '.join(f'{_quoted(key)} = {_quoted(value)}' for key, value in pairs.items())} }}"


def _quoted(value: str) -> str:
    """A text of TOML: its escapes are those of JSON."""
    return json.dumps(value)
