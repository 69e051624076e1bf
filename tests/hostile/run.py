"""Hostile inputs as data: how a case is read, run and judged."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..fuzz.commands import Outcome, run
from ..fuzz.targets import forget

FOLDER = Path(__file__).parent / "cases"
CODES = {0, 1, 2, 65, 66, 69, 129, 130, 143}
PLACES: dict[str, Any] = {  # which every case of `places` finds
    "folder": {"folder": True}, "theirs.html": {"text": "<html>mine</html>"}, "pipe": {"pipe": True},
    "protected.html": {"text": "mine", "mode": 0o444}, "to_pipe": {"link": "pipe"},
    "to_folder": {"link": "folder"}, "loop": {"link": "loop"}, "gtx.toml": {"text": "schema = 1\n"},
}  # fmt: skip
WORDS = {
    "{LONG}": "x" * 300, "{HUGE}": "1" * 100_000, "{BLANKS}": "1" + " " * 100_000 + "x", "{DOTS}": "a." * 50_000,
    "{ZERO}": "a\0b", "{BYTES}": "a\udcffb",
}  # fmt: skip
PROCESS = ("stdout", "stderr", "environment", "limits")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One command line in a folder of its own, and what it must end in."""

    what: str
    words: tuple[str, ...]
    codes: frozenset[int]
    says: tuple[str, ...]
    writes: frozenset[str]
    files: Mapping[str, Any]
    stdout: str = ""
    stderr: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    limit: str = ""

    @property
    def alone(self) -> bool:
        """Whether it takes a process of its own."""
        return bool(self.stdout or self.stderr or self.environment or self.limit)

    def __str__(self) -> str:
        extra = [f"{self.stdout} output", f"{self.stderr} error", str(dict(self.environment)), f"ulimit {self.limit}"]
        return f"{self.what}: archsim {shlex.join(self.words)} ({', '.join(extra)})"


def cases(name: str) -> Iterator[Case]:
    """The cases of a file: every combination of the lists of each entry."""
    for entry in tomllib.loads((FOLDER / f"{name}.toml").read_text("utf-8"))["case"]:
        lists = {key: entry[key] for key in re.findall(r"{([a-z]+)}", entry["run"])}
        matrix = entry.get("matrix", {})
        rest = [entry.get("environment", [{}]), entry.get("limits", [""]), *matrix.values()]
        codes = frozenset(entry["code"] if isinstance(entry["code"], list) else [entry["code"]])
        for value, *chosen in itertools.product(entry.get("values", [""]), *lists.values(), *rest):
            named, (environment, limit, *texts) = dict(zip(lists, chosen, strict=False)), chosen[len(lists) :]
            files = {**(PLACES if name == "places" else {}), **entry.get("files", {})}
            files |= {file: {"text": text} for file, text in zip(matrix, texts, strict=True)}
            text = entry["run"]
            if "content" in entry:
                files[entry["content"]] = {"text": value}
            for key, word in named.items():
                text = text.replace("{" + key + "}", word)
            yield Case(
                what=entry["what"], words=_words(text, "" if "content" in entry else value, "content" not in entry), codes=codes,
                says=tuple(entry.get("says", ())), writes=frozenset(entry.get("writes", ())), files=files,
                stdout=entry.get("stdout", ""), stderr=entry.get("stderr", ""), environment=environment, limit=limit,
            )  # fmt: skip


def _words(text: str, value: str, filled: bool) -> tuple[str, ...]:
    """A command line: `{}` alone is split as a shell does, at the end it is one word unless it is written as several."""
    found: list[str] = []
    for word in text.split(" ") if not any(mark in text for mark in "'\"") else shlex.split(text):
        if word == "{}" and filled:
            found += _split(value)
        else:
            found.append(word)
    for mark, hostile in WORDS.items():
        found = [word.replace(mark, hostile) for word in found]
    return tuple("" if word == "''" else word for word in found)


def _split(value: str) -> list[str]:
    if re.search(r"(^|\s)--?[a-z]", value) or re.match(r"[a-z]+ ", value) or value.startswith("'"):
        try:
            return shlex.split(value)
        except ValueError:
            return [value]
    return [value]


def furnish(folder: Path, files: Mapping[str, Any]) -> dict[str, Any]:
    """Make the files of a case; what each holds."""
    for name, how in files.items():
        place = folder / name
        if how.get("folder"):
            place.mkdir()
        elif how.get("pipe"):
            os.mkfifo(place)
        elif "link" in how:
            place.symlink_to(how["link"])
        elif "gzip" in how:
            place.write_bytes(gzip.compress(how["gzip"].encode())[: -how.get("cut", 0) or None])
        else:  # `repeat`: a text many times, between `text` and `end`
            text, times = how.get("repeat", ["", 0])
            place.write_text(how.get("text", "") + text * times + how.get("end", ""), "utf-8", newline="")
        if "mode" in how:
            place.chmod(how["mode"])
    return state(folder)


def state(folder: Path) -> dict[str, Any]:
    """Every file below a folder: kind, and content or target."""
    found: dict[str, Any] = {}
    for place in sorted(folder.rglob("*")):
        name = str(place.relative_to(folder))
        if place.is_symlink():
            found[name] = ("link", os.readlink(place))
        elif place.is_file():
            found[name] = ("file", place.read_bytes())
        else:
            found[name] = ("folder" if place.is_dir() else "special", None)
    return found


def judged(case: Case, folder: Path) -> list[str]:
    """Run a case; what it breaks, in sentences."""
    before = furnish(folder, case.files)
    found = _alone(case, folder) if case.alone else at(folder, case.words)
    wrong = []
    if found.code not in case.codes:
        wrong.append(f"ends in {found.code}, not in {sorted(case.codes)}: {found.err.strip()[-300:]}")
    if found.code not in CODES:
        wrong.append(f"ends in {found.code}")
    missing = [text for text in case.says if not any(word in found.err for word in text.split("|"))]
    wrong += [f"does not say {text!r}: {found.err.strip()[-300:]}" for text in missing]
    if "Traceback" in found.err + found.out or "defect of archsim" in found.err:
        wrong.append(f"breaks: {found.err[-500:]}")
    if found.code >= 2 and not case.stderr and not found.err.strip():
        wrong.append("ends in an error without a word")
    if len(found.err) > 10_000:
        wrong.append(f"says {len(found.err)} characters")
    if re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", found.err):
        wrong.append("prints control characters")
    if "--json" in case.words and found.code == 0 and not case.stdout:
        wrong += _json_problems(found.out)
    after = state(folder)
    for name in {*before, *after}:
        if before.get(name) != after.get(name) and name not in case.writes:
            how = "left behind" if name not in before else "changed" if name in after else "removed"
            wrong.append(f"{name} was {how}")
    return wrong


def _json_problems(text: str) -> list[str]:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} in JSON")

    try:
        json.loads(text, parse_constant=refuse)
    except ValueError as error:
        return [str(error)]
    return []


def at(folder: Path, words: str | Sequence[str]) -> Outcome:
    """A command in a folder, in this process."""
    was = os.getcwd()
    os.chdir(folder)
    try:
        forget()
        return run(shlex.split(words) if isinstance(words, str) else words)
    finally:
        os.chdir(was)


def _alone(case: Case, folder: Path) -> Outcome:
    root = Path(__file__).parents[2]
    words = shlex.join([sys.executable, "-m", "archsim", *case.words])
    shell = f"ulimit {case.limit}; " if case.limit else ""
    ends = {"closed": " >&-", "full": " >/dev/full"}.get(case.stdout, "") + {"closed": " 2>&-"}.get(case.stderr, "")
    environment = {**os.environ, "PYTHONPATH": str(root), **case.environment}
    if case.stdout == "pipe":
        reader, writer = os.pipe()
        os.close(reader)
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", f"{shell}exec {words}{ends}"], cwd=folder, env=environment, check=False, timeout=120,
            stdin=subprocess.DEVNULL, stdout=writer if case.stdout == "pipe" else subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
    finally:
        if case.stdout == "pipe":
            os.close(writer)
    out, err = ((stream or b"").decode("utf-8", "replace") for stream in (done.stdout, done.stderr))
    if "utf-16" in str(case.environment):
        out, err = ((stream or b"").decode("utf-16", "replace") for stream in (done.stdout, done.stderr))
    return Outcome(code=done.returncode, out=out, err=err)
