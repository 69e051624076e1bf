"""A fuzzer: hostile files and command lines, in this process, until something breaks its promise.

    python -m tests.fuzz --seconds 60
    python -m tests.fuzz --cases 1000000 --state reports/fuzz/counts.json
    python -m tests.fuzz --only trace --seed 7 --cases 1

A case may end well or in an error that is meant for the user. Anything else is a finding: another exception, exit code 70, more
than ten seconds, a number that is not finite in an answer, a file left behind.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from random import Random

from archsim.base.errors import ArchsimError

from . import commands
from .check import Hang, in_time
from .targets import TARGETS, Target

REFUSED = "refused"
BLOCK = 64  # cases of one target in a row, so that its caches are warm
MEMORY = 6 << 30  # bytes of address space that a case may take


def one(target: Target, data: bytes, folder: Path) -> str:
    """What a case broke: the last line of an exception and where it was raised; `REFUSED` for an error meant for the user.

    Empty where the case reached its end.
    """
    try:
        with in_time(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            target.run(data, folder)
    except ArchsimError:
        return REFUSED
    except (Exception, Hang, SystemExit) as error:
        own = [frame for frame in traceback.extract_tb(error.__traceback__) if "/archsim/" in frame.filename]
        where = f"{Path(own[-1].filename).name}:{own[-1].name}" if own else "tests"
        return f"{type(error).__name__} in {where}: {str(error)[:1500]}"
    return ""


def clear(folder: Path) -> None:
    """An empty folder."""
    for name in os.listdir(folder):
        place = folder / name
        if name not in commands.FILES:
            shutil.rmtree(place) if place.is_dir() and not place.is_symlink() else place.unlink()


def limited() -> None:
    """Refuse memory beyond `MEMORY`, so that a case that takes too much ends in a MemoryError."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def key(said: str) -> str:
    """Findings with the same key are one: words and numbers of the case are left out."""
    import re

    return re.sub(r"\d+|'[^']*'|\"[^\"]*\"", "#", said.split("\n")[0])[:160]


def fuzz(names: list[str], seed: int, cases: int, seconds: float, keep: Path | None, state: Path | None) -> int:
    """Run until `cases` or `seconds` are over; the number of findings."""
    chosen = [TARGETS[name] for name in names]
    counts, ended, spent = dict.fromkeys(names, 0), dict.fromkeys(names, 0), dict.fromkeys(names, 0.0)
    found: dict[str, int] = {}
    random, began, done = Random(seed), time.monotonic(), 0
    folder = Path(tempfile.mkdtemp(prefix="archsim-fuzz-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
    told = began
    stopped: list[int] = []  # signals; in place of the default, so that a command does not take one for its own
    before = signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))
    try:
        while done < cases and time.monotonic() - began < seconds and not stopped:
            (target,) = random.choices(chosen, [one.weight for one in chosen])
            block = random.randrange(1 << 48)
            for number in range(min(BLOCK, cases - done)):
                data = target.make(Random(f"{target.name} {block} {number}"))
                start = time.monotonic()
                said = one(target, data, folder)
                spent[target.name] += time.monotonic() - start
                counts[target.name] += 1
                done += 1
                clear(folder)
                ended[target.name] += said == ""
                if said and said != REFUSED:
                    if key(said) not in found:
                        print(f"finding in {target.name} (seed {block} {number}): {said}", flush=True)
                        if keep is not None:
                            keep.mkdir(parents=True, exist_ok=True)
                            name = f"{target.name}-{hashlib.sha256(key(said).encode()).hexdigest()[:12]}"
                            (keep / name).write_bytes(data)
                            (keep / f"{name}.txt").write_text(f"seed {block} {number}\n{said}\n", "utf-8", "backslashreplace")
                    found[key(said)] = found.get(key(said), 0) + 1
                if stopped or time.monotonic() - began >= seconds:
                    break
            if time.monotonic() - told > 60:
                told = time.monotonic()
                print(f"{done:,} cases, {len(found)} findings, {told - began:.0f} s", file=sys.stderr, flush=True)
                if state is not None:
                    _save(state, counts, ended, spent)
                    counts, ended, spent = dict.fromkeys(names, 0), dict.fromkeys(names, 0), dict.fromkeys(names, 0.0)
    finally:
        signal.signal(signal.SIGTERM, before)
        shutil.rmtree(folder, ignore_errors=True)
        totals = _save(state, counts, ended, spent)
    for name, row in totals.items():
        print(f"{name:14} {row['cases']:>10,} cases {row.get('reached_the_end', 0):>10,} to the end {row['seconds']:>9,.0f} s")
    print(f"{done:,} cases of this run, {len(found)} findings")
    return len(found)


def _save(
    state: Path | None, counts: dict[str, int], ended: dict[str, int], spent: dict[str, float]
) -> dict[str, dict[str, float]]:
    """Add the counts to those of earlier runs; all of them."""
    totals: dict[str, dict[str, float]] = {}
    if state is not None and state.exists():
        totals = json.loads(state.read_text())
    for name in counts:
        row = totals.setdefault(name, {"cases": 0, "reached_the_end": 0, "seconds": 0.0})
        row["reached_the_end"] = row.get("reached_the_end", 0) + ended[name]
        row["cases"] += counts[name]
        row["seconds"] = round(row["seconds"] + spent[name], 1)
    if state is not None:
        state.parent.mkdir(parents=True, exist_ok=True)
        state.write_text(json.dumps(totals, indent=1, sort_keys=True) + "\n")
    return totals


def main() -> None:
    """Read the words of the command line."""
    form = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__, formatter_class=form)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time")
    parser.add_argument("--cases", type=int, default=None, help="stop after this many cases")
    parser.add_argument("--seed", type=int, default=None, help="of the whole run; another in each run if not given")
    parser.add_argument("--only", default=",".join(TARGETS), help=f"targets, separated by commas: {', '.join(TARGETS)}")
    parser.add_argument("--keep", type=Path, default=None, help="write the first case of each finding into this folder")
    parser.add_argument("--state", type=Path, default=None, help="add the counts to this file")
    parser.add_argument("--replay", type=Path, default=None, help="run the case of this file, of the target that --only names")
    given = parser.parse_args()
    names = [name for name in given.only.split(",") if name]
    limited()
    if given.replay is not None:
        with tempfile.TemporaryDirectory() as folder:
            said = one(TARGETS[names[0]], given.replay.read_bytes(), Path(folder))
        print(said or "nothing broke")
        sys.exit(said not in ("", REFUSED))
    if given.cases is None and given.seconds == float("inf"):
        given.seconds = 60.0
    seed = given.seed if given.seed is not None else Random().randrange(1 << 32)
    print(f"seed {seed}", flush=True)
    sys.exit(fuzz(names, seed, given.cases if given.cases is not None else 1 << 62, given.seconds, given.keep, given.state) > 0)


if __name__ == "__main__":
    main()
