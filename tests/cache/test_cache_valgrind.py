"""A real program: its lackey trace through our caches beside what cachegrind counted on the same program and geometry.

Cachegrind's own rules are built from two of our levels here: every access is a read, a modification one access; what straddles
two lines is one access that misses if either line does, and then asks the last level for both; instructions and data share the
last level; nothing is written back.
"""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from archsim.cache.access import Accesses, chunks
from archsim.cache.hierarchy import Hierarchy, Level
from archsim.cache.simulate import Simulation, simulate
from archsim.cache.trace_file import read

HERE = Path(__file__).parent / "valgrind"
RECORDED = json.loads((HERE / "program.cachegrind.json").read_text("utf-8"))
FIRST = {"size": 1024, "ways": 2}
LAST = {"size": 4096, "ways": 4}


def whole(path: Path) -> Accesses:
    """All accesses; core 1 fetches instructions."""
    parts = list(read(path, instructions=True))
    names = ("address", "size", "store", "core")
    return Accesses(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})


def without_second_halves(accesses: Accesses) -> Accesses:
    """A modification is a load and a store of the same place in a row; cachegrind takes it for one read."""
    a = accesses
    same = (a.address[1:] == a.address[:-1]) & (a.size[1:] == a.size[:-1]) & (a.store[1:] == 1) & (a.store[:-1] == 0)
    kept = np.flatnonzero(~np.concatenate([[False], same]))
    return Accesses(address=a.address[kept], size=a.size[kept], store=a.store[kept], core=a.core[kept])


def missing(hierarchy: Hierarchy, accesses: Accesses, fast: bool) -> np.ndarray:
    """Positions of the accesses of which any line misses, all of them taken as reads."""
    state, found, before = Simulation(hierarchy, fast, watched=True), [], 0
    reads = Accesses(address=accesses.address, size=accesses.size, core=accesses.core)
    for part in chunks([reads]):
        asked, below = state.feed(part)
        found.append(before + asked.source[below.source])
        before += len(part)
    return np.unique(np.concatenate(found))


def by_cachegrinds_rules(accesses: Accesses, fast: bool) -> dict[str, int]:
    one = without_second_halves(accesses)
    first = Hierarchy(levels=(Level(name="L1", **FIRST),), cores=2)
    last = Hierarchy(levels=(Level(name="LL", cores=2, **LAST),), cores=2)
    misses = missing(first, one, fast)
    asking = Accesses(address=one.address[misses], size=one.size[misses], core=one.core[misses])
    both = misses[missing(last, asking, fast)]
    kinds = {"I": one.core == 1, "Dr": (one.core == 0) & (one.store == 0), "Dw": (one.core == 0) & (one.store == 1)}
    counts = {}
    for name, mask in kinds.items():
        short = name[0] + "1m" + name[1:] if name != "I" else "I1mr"
        lower = name[0] + "Lm" + name[1:] if name != "I" else "ILmr"
        refs = "Ir" if name == "I" else name
        counts |= {refs: int(mask.sum()), short: int(mask[misses].sum()), lower: int(mask[both].sum())}
    return counts


def test_the_recorded_program_by_cachegrinds_rules(fast: bool) -> None:
    assert by_cachegrinds_rules(whole(HERE / "program.lackey.gz"), fast) == RECORDED["events"]


def test_our_own_rules_differ_by_the_straddling_accesses_alone(fast: bool) -> None:
    """In D1, whose contents no write-back changes: each straddling access of which both lines miss counts twice here."""
    accesses = whole(HERE / "program.lackey.gz")
    data = np.flatnonzero(accesses.core == 0)
    alone = Accesses(address=accesses.address[data], size=accesses.size[data], store=accesses.store[data])
    first = Hierarchy(levels=(Level(name="L1", **FIRST),))
    state = Simulation(first, fast, watched=True)
    sources = np.concatenate([asked.source[below.source[below.kind == 0]] for asked, below in map(state.feed, chunks([alone]))])
    twice = len(sources) - len(np.unique(sources))
    assert twice > 0
    assert state.counts[0].misses - twice == RECORDED["events"]["D1mr"] + RECORDED["events"]["D1mw"]


def test_a_wrong_geometry_would_be_noticed() -> None:
    data = without_second_halves(whole(HERE / "program.lackey.gz"))
    one = Hierarchy(levels=(Level(name="L1", size=1024, ways=4),), cores=2)
    assert simulate(one, [data], False).counts[0].misses != sum(RECORDED["events"][name] for name in ("I1mr", "D1mr", "D1mw"))


@pytest.mark.skipif(not (shutil.which("valgrind") and shutil.which("gcc")), reason="valgrind or gcc is not installed")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the program is for x86-64")
def test_a_program_that_runs_here(tmp_path: Path, fast: bool) -> None:
    def run(*words: str, ok: tuple[int, ...] = (0,)) -> None:
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode in ok, done.stderr

    run("gcc", "-O1", "-static", "-nostdlib", "-fno-stack-protector", "-o", "program", str(HERE / "program.c"))
    run("valgrind", "--tool=lackey", "--trace-mem=yes", "--log-file=program.lackey", "./program", ok=(0, 1))
    sizes = [f"{name}={level['size']},{level['ways']},64" for name, level in (("--I1", FIRST), ("--D1", FIRST), ("--LL", LAST))]
    run("valgrind", "--tool=cachegrind", "--cache-sim=yes", *sizes, "--cachegrind-out-file=out", "--log-file=log", "./program",
        ok=(0, 1))  # fmt: skip
    lines = (tmp_path / "out").read_text().splitlines()
    names = next(line for line in lines if line.startswith("events:")).split()[1:]
    values = next(line for line in lines if line.startswith("summary:")).split()[1:]
    counted = dict(zip(names, map(int, values), strict=True))
    assert by_cachegrinds_rules(whole(tmp_path / "program.lackey"), fast) == counted
