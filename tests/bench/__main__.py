"""Benches, and what a change does to their figures; no test asserts a time.

python -m tests.bench --list                    names, with a line each
python -m tests.bench sweep                     one, whole; what follows the name is its own (sweep --help)
python -m tests.bench --smoke [NAME...]         whether all run, at tiny sizes; exits with the names of those that fail
python -m tests.bench --against REV [NAME...]   each figure over that of a commit, of samples that take turns
"""

from __future__ import annotations

import ast
import importlib
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .against import compare
from .figure import arguments, report

FOLDER = Path(__file__).parent
HELPERS = ("__main__", "against", "figure")  # every other module here is a bench
LONGEST_S = 120  # a safety net, so that what hangs is named, too


def benches(folder: Path = FOLDER) -> dict[str, str]:
    """The first line of what each bench says of itself, by name."""
    files = [file for file in sorted(folder.glob("*.py")) if file.stem not in HELPERS and not file.stem.startswith("test_")]
    docs = {file.stem: ast.get_docstring(ast.parse(file.read_text("utf-8"))) or "says nothing" for file in files}
    return {name: doc.splitlines()[0] for name, doc in docs.items()}


def fault(name: str) -> str:
    """Runs a bench at tiny sizes in a process of its own; what it prints where it fails, otherwise nothing."""
    words = [sys.executable, "-m", "tests.bench", name, "--smoke"]
    try:
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LONGEST_S)
    except subprocess.TimeoutExpired:
        return f"takes more than {LONGEST_S} s"
    return (done.stdout or f"exit code {done.returncode}") if done.returncode else ""


def failing(names: Sequence[str]) -> list[str]:
    """Runs benches side by side, one for each core, and returns those that fail."""
    failed = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, said in zip(names, pool.map(fault, names), strict=True):
            print(f"{name}: {'FAILS' if said else 'runs'}\n{said}".rstrip(), flush=True)
            failed += [name] if said else []
    return failed


def run(name: str, words: Sequence[str]) -> None:
    """Runs a bench with words of its own: its `main`, or its figures."""
    bench = importlib.import_module(f"tests.bench.{name}")
    if hasattr(bench, "main"):
        bench.main(words)
    else:
        report(bench.__doc__, bench.FIGURES, words)


def main(words: Sequence[str]) -> None:
    """Run one bench, or what the options say."""
    known = benches()
    if words and words[0] in known:
        run(words[0], words[1:])
        return
    parser = arguments(__doc__, names={"nargs": "*", "metavar": "NAME", "help": "of benches; all if none is given"})
    parser.add_argument("--list", action="store_true", help="names, with a line each")
    parser.add_argument("--against", metavar="REV", help="a commit, branch or tag to compare with")
    parser.add_argument("--rounds", type=int, default=7, help="samples of each figure of each version (%(default)s)")
    asked = parser.parse_args(words)
    if unknown := set(asked.names) - set(known):
        parser.error(f"no bench is called {', '.join(sorted(unknown))}; --list names them")
    names = asked.names or list(known)
    if asked.list:
        print("\n".join(f"{name:<12} {known[name]}" for name in names))
    elif asked.against:
        compare(asked.against, names, asked.rounds, asked.smoke)
    elif asked.smoke:
        if failed := failing(names):
            sys.exit(f"benches that fail: {', '.join(failed)}")
    else:
        parser.error("the name of a bench, --list, --smoke or --against REV")


if __name__ == "__main__":
    main(sys.argv[1:])
