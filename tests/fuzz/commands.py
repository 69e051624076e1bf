"""Command lines: every command with options that it has, and values from edges; run in this process."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

import click

from . import mutate
from .check import Broken, json_of

CODES = {0, 1, 2, 65, 66, 69}
SOUND: dict[str, list[str]] = mutate.VALUES["sound"]
LEFT_OUT = {"measure", "calibrate", "doctor", "study", "simulate kernels", "ui"}  # take minutes, or serve; tests have cases
SLOW = {("--fidelity", "cycle")}
NEVER = {"--freeze", "--probe", "--scheduler", "--workers", "--gpu", "--check",
         "--intervals"}  # fmt: skip
NEVER |= {"--site"}  # three hundred pages take longer than a case may
FILES = ("n.jsonl", "tiny.jsonl", "m.csv", "c.toml", "t.din", "a.csv", "p.csv", "d.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a command left behind."""

    code: int
    out: str
    err: str


@cache
def options() -> dict[tuple[str, ...], tuple[click.Parameter, ...]]:
    """The parameters of every command, by its words."""
    from archsim.cli.main import COMMANDS, group

    found: dict[tuple[str, ...], tuple[click.Parameter, ...]] = {}
    for name in COMMANDS:
        if name in LEFT_OUT:
            continue
        command = group.get_command(click.Context(group), name)
        assert command is not None
        if isinstance(command, click.Group):
            for inner in command.list_commands(click.Context(command)):
                if f"{name} {inner}" in LEFT_OUT:
                    continue
                one = command.get_command(click.Context(command), inner)
                assert one is not None
                found[(name, inner)] = tuple(one.params)
        else:
            found[(name,)] = tuple(command.params)
    return found


def make(random: Random) -> bytes:
    """A command line as JSON: a list of words."""
    words = random.choice(list(options()))
    if random.random() < 0.01:
        return json.dumps([mutate.word(random) for _ in range(random.randrange(4))]).encode()
    given = list(words)
    wild = random.choice((0.0, 0.05, 0.2, 0.5))
    if words == ("validate",):  # without a file it reads the whole corpus, which takes longer than a case may
        given += random.choice((["--measurements", "m.csv"], ["--add", "m.csv"]))
    for parameter in options()[words]:
        name = max(parameter.opts, key=len)
        if name in NEVER or (not parameter.required and random.random() > 0.2):
            continue
        if isinstance(parameter, click.Argument):
            given += [_value(name, parameter, wild, random)]
        elif getattr(parameter, "is_flag", False):
            given.append(random.choice([*parameter.opts, *parameter.secondary_opts]))
        elif random.random() < 0.98:
            given += [name, _value(name, parameter, wild, random)]
    if random.random() < 0.05:
        given.insert(random.randrange(len(given) + 1), mutate.word(random))
    return json.dumps(given).encode()


def _value(name: str, parameter: click.Parameter, wild: float, random: Random) -> str:
    sound = SOUND.get(name, ())
    if isinstance(parameter.type, click.Choice):
        sound = tuple(str(choice) for choice in parameter.type.choices)
    if random.random() >= wild and sound:
        return random.choice([one for one in sound if (name, one) not in SLOW])
    kind = random.random()
    if kind < 0.35:
        return mutate.number(random)
    if kind < 0.6:
        return mutate.word(random)
    if kind < 0.7:
        return random.choice(FILES)
    if kind < 0.75:
        return mutate.number(random) + random.choice(mutate.UNITS)
    return mutate.text_of(random.choice(sound or ("1",)), random)[:400]


def run(words: Sequence[str]) -> Outcome:
    """A command in this process; both streams take any text."""
    from archsim.cli.main import main

    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace", write_through=True) for _ in range(2))
    before = sys.argv
    sys.argv = ["archsim", *words]
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main()
        raise Broken("main came back")
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else -1
    finally:
        sys.argv = before
    texts = [stream.buffer.getvalue().decode("utf-8", "replace") for stream in (out, err)]  # type: ignore[attr-defined]
    return Outcome(code=code, out=texts[0], err=texts[1])


def checked(words: Sequence[str]) -> Outcome:
    """A command that must end in one of the codes that mean something, with finite JSON."""
    found = run(words)
    if found.code not in CODES:
        raise Broken(f"exit code {found.code}: {found.err.strip()[:2000]}")
    if "Traceback" in found.err or "Traceback" in found.out or "not enough memory" in found.err:
        raise Broken(found.err[:2000])
    if found.code in (2, 65, 66, 69) and not found.err.strip():
        raise Broken("an error without a word")
    if "--json" in words and found.code == 0 and found.out.startswith(("{", "[")):
        json_of(found.out)
    return found


def run_case(data: bytes, folder: Path) -> None:
    """A command line in a folder with a file of each kind, which must be as it was afterwards."""
    from .targets import forget

    words = json.loads(data)
    _furnish(folder)
    before = {name: (folder / name).read_bytes() for name in FILES}
    was = os.getcwd()
    os.chdir(folder)
    try:
        forget()
        checked(words)
    finally:
        os.chdir(was)
    for name, content in before.items() if "--force" not in words else ():
        if not (folder / name).is_file() or (folder / name).read_bytes() != content:
            raise Broken(f"{name} was changed")
    left = [name for name in os.listdir(folder) if name.startswith(".archsim-")]
    if left:
        raise Broken(f"left behind: {left}")


def _furnish(folder: Path) -> None:
    from .targets import ADDRESSES, ARRIVALS, HEAD, PRICES, ROWS, TINY, shipped

    spec = next(text for text in shipped("hwspecs", ".toml") if 'id = "gtx_1080"' in text)
    texts = {
        "n.jsonl": TINY, "tiny.jsonl": TINY.replace('"N"', "4"), "m.csv": "\n".join([HEAD, *ROWS]) + "\n",
        "t.din": ADDRESSES[1], "a.csv": ARRIVALS[0], "p.csv": PRICES[0],
        "c.toml": shipped("reports/calibration", ".toml", 1 << 20)[0], "d.toml": spec.replace('id = "gtx_1080"', 'id = "mine"'),
    }  # fmt: skip
    for name, text in texts.items():
        place = folder / name
        if not place.is_file():
            place.write_text(text, "utf-8")


def heard() -> None:
    """Interrupts are heard, whatever started this process."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


