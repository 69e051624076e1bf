"""Whether predictions moved: `python -m tests.replay`, and `--accept` after a change that is meant to move them.

The file `predictions.txt` has a digest for each group of predictions. Where one differs, the version that wrote the file runs
beside this one, in a worktree of its own, and what moved is printed by source and device: the table that the commit carries.
Exit codes: 0 no prediction moved, or it was accepted; 1 some moved; 2 the version to compare with cannot be had.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.replay.moved import by_group, moves, table
from tests.replay.record import FILE, as_text, lines_of, read
from tests.replay.values import Values, computed

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "build" / "replay"  # values of versions that ran here, so that each runs once


def main() -> int:
    """The command."""
    words = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m tests.replay", description=__doc__, formatter_class=words)
    parser.add_argument("--accept", action="store_true", help="write predictions.txt; say what moved")
    parser.add_argument("--against", metavar="REV", help="the version to compare with (the commit that wrote predictions.txt)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes (all cores)")
    parser.add_argument("--dump", type=Path, metavar="FILE", help="only write the values of this tree")
    asked = parser.parse_args()
    began = time.perf_counter()
    values = computed(asked.workers)
    if asked.dump:
        store(values, asked.dump)
        return 0
    recorded = FILE.read_text("utf-8") if FILE.exists() else ""
    differing = by_group(read(recorded), lines_of(values))
    took = f"{sum(map(len, values.values())):,} values in {len(values)} groups, {time.perf_counter() - began:.0f} s"
    if not differing and not asked.against:
        store(values, kept_as(recorded))
        print(f"no prediction moved ({took})")
        return 0
    print(f"{len(differing)} groups differ from predictions.txt ({took})", file=sys.stderr)
    kept = kept_as(recorded)
    before = load(kept) if kept.exists() and not asked.against else values_at(asked.against, asked.workers)
    if before is not None:
        print(table(before, values))
        if not asked.accept and not moves(before, values):  # the last digit of another processor's arithmetic
            return 0
    if asked.accept:
        FILE.write_text(as_text(values), "utf-8")
        store(values, kept_as(as_text(values)))
        print(f"wrote {FILE.relative_to(ROOT)}", file=sys.stderr)
        return 0
    if before is None:
        print("\n".join(differing[:40]))
        return 2
    print("if this is meant: python -m tests.replay --accept, and the commit carries the table", file=sys.stderr)
    return 1


def values_at(revision: str | None, workers: int) -> Values | None:
    """The values of another version, which runs in a worktree; None where git does not have it."""
    revision = revision or git("log", "-1", "--format=%H", "--", str(FILE))
    if not revision or not git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"):
        print("git does not have the version that wrote predictions.txt; these groups differ:", file=sys.stderr)
        return None
    with tempfile.TemporaryDirectory() as folder:
        tree, values = Path(folder) / "tree", Path(folder) / "values.json.gz"
        subprocess.run(["git", "-C", str(ROOT), "worktree", "add", "--quiet", "--detach", str(tree), revision], check=True)
        try:
            # An older version without a replay is asked by this one: `tests` of both trees are one namespace, its own first.
            environment = {**os.environ, "PYTHONPATH": f"{tree}{os.pathsep}{ROOT}"}
            words = [sys.executable, "-m", "tests.replay", "--workers", str(workers), "--dump", str(values)]
            if subprocess.run(words, cwd=tree, env=environment, check=False).returncode:
                print(f"{revision} does not run here", file=sys.stderr)
                return None
            return load(values)
        finally:
            subprocess.run(["git", "-C", str(ROOT), "worktree", "remove", "--force", str(tree)], check=False)


def git(*words: str) -> str:
    """What git prints; empty where there is no git or no repository."""
    try:
        return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def kept_as(recorded: str) -> Path:
    """Where the values lie that belong to a text of predictions.txt."""
    return KEPT / f"{hashlib.sha256(recorded.encode()).hexdigest()[:16]}.json.gz"


def store(values: Values, place: Path) -> None:
    """Write values whole or not at all; of those that are kept, the latest few stay."""
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_suffix(".part")
    with gzip.open(part, "wt", compresslevel=1, encoding="utf-8") as stream:
        json.dump(values, stream)
    part.replace(place)
    if place.parent == KEPT:
        for old in sorted(KEPT.glob("*.json.gz"), key=lambda each: each.stat().st_mtime)[:-3]:
            old.unlink()


def load(place: Path) -> Values:
    """Values that `store` wrote."""
    with gzip.open(place, "rt", encoding="utf-8") as stream:
        found: Values = json.load(stream)
    return found


if __name__ == "__main__":
    sys.exit(main())
