"""Make anew what follows from predictions, and only what is out of date: `python reports/release.py`.

    derived ──► fit ──► predictions ──► frozen, ladder, studies, surrogate, traffic ──► text ──► checks
                         (replay)

Each step reads files and what earlier steps made. `release.toml` beside this file has, for each step, the digest of what it read
when it ran last; a step whose digest is another one is out of date. `predictions.txt` of the replay stands for the model, the
constants and the measurements: while no prediction moves, nothing that is made from predictions is out of date.

Exit codes: 0 all done, or nothing out of date; 1 a step failed, or with --check something is out of date.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
STATE = Path("reports/release.toml")
CONSTANTS, PREDICTIONS = "reports/calibration/default.toml", "tests/replay/predictions.txt"
DERIVED = "reports/calibration/derived.toml"
ARCHSIM = (sys.executable, "-m", "archsim")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing that a release makes.

    reads: files and folders (`*.py` of a folder of code), of which any change makes the step due
    commands: run in the root, one after the other; one may end with an exit code in `admits`
    minutes: how long it takes on two cores, for whoever waits
    """

    name: str
    what: str
    reads: tuple[str, ...]
    commands: tuple[tuple[str, ...], ...]
    minutes: float
    admits: tuple[int, ...] = (0,)


def _fitted(*words: str) -> tuple[str, ...]:
    return (*ARCHSIM, "calibrate", *words, "--workers", "2", "--force", "--out", CONSTANTS)


MODEL_OF_SM = ("archsim/cycle", "archsim/cost", "archsim/validation/random_kernels.py")
CASES = "reports/published"
STEPS = (
    Step(name="derived", what="clocks of scalar loops, as the cycle model of a core has them",
         reads=("archsim/cycle/core", "hwspecs"), minutes=1,
         commands=((*ARCHSIM, "simulate", "kernels", "--derive", DERIVED, "--force"),)),
    # Exit code 1: a constant lies at the bound of its range, which the fit says.
    Step(name="fit", what="constants of times and of energy, with their intervals, and the predictions of the replay",
         reads=(PREDICTIONS, CASES, DERIVED), minutes=30, admits=(0, 1),
         commands=(_fitted("--intervals", "source"), _fitted("--fit", "energy.", "--intervals", "hardware"),
                   (sys.executable, "-m", "tests.replay", "--accept"))),
    Step(name="frozen", what="errors on the published corpus and on served models, what each part of the model is worth",
         reads=(PREDICTIONS, CONSTANTS, CASES), minutes=8,
         commands=((*ARCHSIM, "validate", "--freeze", "reports/validation"),)),
    Step(name="ladder", what="error against time of each fidelity", reads=(PREDICTIONS, CASES), minutes=4,
         commands=((sys.executable, "tests/bench/ladder.py", "--freeze"),)),
    Step(name="studies", what="the reports of reports/studies", minutes=1,
         reads=(PREDICTIONS, CONSTANTS, "reports/studies/bandwidth_or_sms/study.toml", "reports/studies/k40_to_v100/study.toml",
                "reports/studies/tegra_lpddr5/study.toml", "archsim/study", "archsim/answers", "archsim/render"),
         commands=((*ARCHSIM, "study", *(f"reports/studies/{name}/study.toml"
                                         for name in ("bandwidth_or_sms", "k40_to_v100", "tegra_lpddr5"))),)),
    Step(name="surrogate", what="the closed form beside the cycle model on random kernels",
         reads=(*MODEL_OF_SM, DERIVED, CONSTANTS, "hwspecs"), minutes=8,
         commands=((*ARCHSIM, "simulate", "kernels", "--check", "reports/validation"),)),
    Step(name="traffic", what="traffic of products by closed forms beside simulated caches",
         reads=("archsim/cache", "archsim/cost", PREDICTIONS), minutes=6,
         commands=((*ARCHSIM, "cache", "--check", "reports/validation"),)),
    Step(name="text", what="the digits in README and manual, and the picture of the README",
         reads=(PREDICTIONS, CONSTANTS, "README.md", "archsim/manual", "archsim/answers", "archsim/render", "archsim/cli",
                "reports/validation/validation.json", "reports/validation/served.json", "reports/ladder/ladder.json"), minutes=1,
         commands=((sys.executable, "tests/readme/regenerate.py"),)),
    Step(name="checks", what="all that CI leaves out: slow tests, mutants, fuzz, all tests on other versions, cold derivations",
         reads=(PREDICTIONS, "archsim", "tests", "hwspecs", "traces/stacks", "README.md"), minutes=60,
         commands=((".ci/release",),)),
)  # fmt: skip
NAMES = tuple(step.name for step in STEPS)


def main() -> int:
    """The command."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="reports/release.py", description=__doc__, formatter_class=form)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--list", action="store_true", help="print the steps, what each reads, and which are out of date")
    which.add_argument("--check", action="store_true", help="exit 1 if anything is out of date, and name it")
    which.add_argument("--only", action="append", choices=NAMES, metavar="STEP",
                       help=f"make this, due or not: {', '.join(NAMES)}")  # fmt: skip
    which.add_argument("--current", action="append", choices=NAMES, metavar="STEP",
                       help="take a step as made from what is there, after it was made by hand")  # fmt: skip
    asked = parser.parse_args()
    if asked.list:
        for step in STEPS:
            print(f"{step.name:10} {'due' if due(step) else 'current':8} {step.minutes:4.0f} min  {step.what}")
        return 0
    if asked.check:
        stale = [step.name for step in STEPS if due(step)]
        print(f"out of date: {', '.join(stale)}; `python reports/release.py` makes them" if stale else "nothing is out of date")
        return 1 if stale else 0
    for step in STEPS:
        if asked.current:
            if step.name in asked.current:
                note(step)
        elif (step.name in asked.only if asked.only else due(step)) and not made(step):
            return 1
    return 0


def made(step: Step) -> bool:
    """Run a step, and note what it was made from; False, with its command, where it failed."""
    began = time.perf_counter()
    print(f"== {step.name}: {step.what} (about {step.minutes:.0f} min)", flush=True)
    for command in step.commands:
        code = subprocess.run(command, cwd=ROOT, check=False).returncode
        if code not in step.admits:
            print(f"release: {step.name} failed with exit code {code}: {' '.join(command)}; mend it, and call the release again: "
                  "it goes on here", file=sys.stderr)  # fmt: skip
            return False
    note(step)
    print(f"== {step.name}: {time.perf_counter() - began:.0f} s", flush=True)
    return True


def due(step: Step) -> bool:
    """Whether a step was made from something else than what is there."""
    return noted().get(step.name) != digest(step.reads)


def noted() -> dict[str, str]:
    """Step -> digest of what it was made from."""
    place = ROOT / STATE
    return dict(tomllib.loads(place.read_text("utf-8"))["made_from"]) if place.exists() else {}


def note(step: Step) -> None:
    """Write down what a step was made from: as it is now, since a fit writes the predictions that it reads the next time."""
    of = {**noted(), step.name: digest(step.reads)}
    lines = ["# What each step of reports/release.py was made from, as digests of files.", "[made_from]"]
    part = (ROOT / STATE).with_suffix(".part")
    part.write_text("\n".join([*lines, *(f'{name} = "{of[name]}"' for name in NAMES if name in of), ""]), "utf-8")
    part.replace(ROOT / STATE)


def digest(reads: Sequence[str]) -> str:
    """Sixteen hexadecimal digits that stand for the names and bytes of files; a folder stands for all in it."""
    found = hashlib.sha256()
    for file in sorted({file for name in reads for file in files(ROOT / name)}):
        found.update(f"{file.relative_to(ROOT)}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    return found.hexdigest()[:16]


def files(place: Path) -> Iterator[Path]:
    """A file, or all files under a folder but what Python and tests leave there."""
    if place.is_file():
        yield place
    elif not place.is_dir():
        raise SystemExit(f"release: {place} is not there")
    else:
        yield from (file for file in place.rglob("*") if file.is_file() and not {"__pycache__", ".hypothesis"} & set(file.parts))


if __name__ == "__main__":
    sys.exit(main())
