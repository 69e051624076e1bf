"""Every hostile input ends in one clear message and the right code, and nothing is lost."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from archsim.base.errors import ArchsimError
from archsim.base.files import data_folder
from archsim.base.units import TEXT
from archsim.device.device import CLASSES, Identity
from archsim.device.file import HEADER
from archsim.device.part import declared
from archsim.device.spec import keys
from archsim.estimation.estimate import estimate
from archsim.node import spec as nodes
from archsim.node.node import TABLES as NODE
from archsim.node.node import LinkKind
from archsim.node.spec import NodeHeaderForm
from archsim.node.system import TABLES as SYSTEM
from archsim.node.system import SystemHeaderForm
from archsim.simulate.allreduce import simulate_all_reduce
from archsim.stack.compose import AXES
from archsim.stack.key import lines
from archsim.stack.stack import Stack
from archsim.ui.server import WhatIfApplication

from ..each import each
from ..fuzz.check import in_time
from ..fuzz.targets import forget
from ..ui.asked import get, send
from .run import FOLDER, Case, cases, judged

HERE = [path.stem for path in sorted(FOLDER.glob("*.toml"))]


def failures(chosen: list[Case], folder: Path) -> list[str]:
    found = []
    for case in chosen:
        place = folder / "case"
        place.mkdir()
        found += [f"{case}\n    {wrong}" for wrong in judged(case, place)]
        shutil.rmtree(place)
    return found


def whats(name: str) -> list[str]:
    return list(dict.fromkeys(case.what for case in cases(name)))


QUICK = [(name, what) for name in HERE if name != "processes" for what in whats(name)]
SLOW = [("processes", what) for what in whats("processes")]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "what"), QUICK, ids=[what for _, what in QUICK])
def test_in_this_process(name: str, what: str, tmp_path: Path) -> None:
    found = failures([case for case in cases(name) if case.what == what], tmp_path)
    assert not found, "\n" + "\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "what"), SLOW, ids=[what for _, what in SLOW])
def test_in_a_process_of_its_own(name: str, what: str, tmp_path: Path) -> None:
    found = failures([case for case in cases(name) if case.what == what], tmp_path)
    assert not found, "\n" + "\n".join(found)


def test_there_are_many() -> None:
    assert sum(1 for name in HERE for _ in cases(name)) > 700


def test_a_case_that_fails_is_noticed(tmp_path: Path) -> None:
    case = next(cases("names"))
    wrong = Case(what="", words=("list", "fidelities"), codes=frozenset([65]), says=("nothing",), writes=frozenset(), files={})
    assert not failures([case], tmp_path)
    assert len(failures([wrong], tmp_path)) == 2


# ------------------------------------------------------------------------------------------- files that a file names


def inline(value: Any) -> str:
    """A value as TOML writes it within a line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {inline(one)}" for key, one in value.items()) + "}"
    return f"[{', '.join(map(inline, value))}]" if isinstance(value, list) else json.dumps(value)


def with_word(text: str, key: str, value: Any) -> str:
    """A TOML file in which the key at a dotted path has a value."""
    words = tomllib.loads(text)
    table, (*above, last) = words, key.split(".")
    for name in above:
        table = table.setdefault(name, {})
    table[last] = value
    return "".join(f"{json.dumps(name)} = {inline(one)}\n" for name, one in words.items())


def entry(word: str) -> dict[str, str]:
    return {"value": word, "source": "x", "kind": "measured"}


def listed(word: str) -> list[str]:
    return [word]


Made = tuple[str, str, Callable[[str], Any]]  # kind of file, key, what stands there for a word


def text_keys() -> Iterator[Made]:
    """Every key that takes a text, read off the schemas, so that a new one is among them."""
    for kind in CLASSES:
        yield from ((kind, name, str) for name in HEADER if name not in HEADS or HEADS[name][0].unit == TEXT)
        yield from ((kind, name, entry) for name, unit, _ in keys(kind) if unit.unit == TEXT)
    for kind, form, tables in (("node", NodeHeaderForm, {**NODE, "links.pcie": LinkKind}), ("system", SystemHeaderForm, SYSTEM)):
        for name, of in form.model_fields.items():
            if "str" in str(of.annotation):
                yield kind, name, listed if "list" in str(of.annotation) else str
        for table, part in tables.items():
            yield from ((kind, f"{table}.{name}", entry) for name, (unit, _) in declared(part).items() if unit.unit == TEXT)
    yield from (("stack", name, str) for name in ("id", "like", *(f"parts.{axis}" for axis in AXES)))
    for line in lines(Stack):
        if not re.search("number|true|unit|table", line.takes):
            place = re.sub(r"\((\w+)[^)]*\)", r"\1", line.path).replace("NAME", "alexnet")
            yield "stack", place, listed if "list" in line.takes else str


HEADS = declared(Identity)
SOUND = {"gpu": "gtx_1080", "cpu": "rk3588", "tpu": "tpu_v1", "node": "hosts/desktop_2gpu", "system": "systems/server"}


def sound(kind: str) -> str:
    """A file of a kind that is all right."""
    if kind == "stack":
        return 'schema = 1\nid = "mine"\nlike = "caffe-cudnn5.1"\n'
    return data_folder("hwspecs").joinpath(f"{SOUND[kind]}.toml").read_text("utf-8")


def asked(kind: str, file: str) -> None:
    """What reads all of a file: an estimate with it, on so few threads that the faster cores of a CPU are enough."""
    if kind == "node":
        simulate_all_reduce(nodes.find(file), [2], [1e6])
        estimate("alexnet", "gtx_1080", host_cpu=nodes.find(file).node.host_cpu.id, fidelity="roofline")
    elif kind == "system":
        estimate("alexnet", "gtx_1080", boundary="wall", system=file)
    elif kind == "stack":
        estimate("alexnet", "gtx_1080", stack=file, fidelity="roofline")
    else:
        estimate("alexnet", file, threads=1 if kind == "cpu" else None, precision="int8" if kind == "tpu" else None)


class Opened(BaseException):
    """A file that must not be opened."""


WATCHED: set[str] = set()


def watch(event: str, words: tuple[Any, ...]) -> None:
    """Raise Opened where a watched file is opened, before it can block."""
    if event == "open" and str(words[0]) in WATCHED:
        raise Opened(words[0])


sys.addaudithook(watch)


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A pipe, a device that never ends, what the kernel shows as a file, and a file of the user's own."""
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "secret.toml").write_text("secret", "utf-8")
    names = [str(tmp_path / "pipe.jsonl"), "/dev/zero", "/proc/kmsg", str(tmp_path / "secret.toml")]
    monkeypatch.setattr("tests.hostile.test_hostile.WATCHED", set(names))
    return names


@each(("kind", "key", "value"), text_keys)
def test_no_word_of_a_file_opens_what_can_block(
    tmp_path: Path, watched: list[str], kind: str, key: str, value: Callable[[str], Any]
) -> None:
    for name in watched[:3]:
        (tmp_path / "mine.toml").write_text(with_word(sound(kind), key, value(name)), "utf-8")
        forget()
        with in_time(10.0), suppress(ArchsimError):
            asked(kind, str(tmp_path / "mine.toml"))


@each(("kind", "key", "value"), text_keys)
def test_no_word_of_a_dropped_file_opens_any_file(
    tmp_path: Path, watched: list[str], kind: str, key: str, value: Callable[[str], Any]
) -> None:
    app = WhatIfApplication(8050)
    for name in watched if kind in CLASSES else ():
        status, _, told = send(app, "hw.toml", with_word(sound(kind), key, value(name)).encode())
        if status == 200:
            get("/result", f"net=alexnet&{told}" + ("&threads=1" if kind == "cpu" else ""), app)
    app.uploads.close()
