"""Mutation score of a room: which share of all small changes of its code some test notices.

    python -m tests.mutations.score cost                   all mutants of archsim/cost; writes reports/mutations/
    python -m tests.mutations.score cost --again           those that were not noticed the last time, with the tests of now
    python -m tests.mutations.score lower --sample 300     so many mutants, spread evenly over the room
    python -m tests.mutations.score cost/sm.py --dry       one file; writes nothing

Tests that compare with earlier results (replayed and frozen numbers, outputs in the manual) take no part: a mutant counts as
noticed where a test knows what is right. The source on disk stays as it is.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from .battery import BROKEN, KILLED, SURVIVED, TIMEOUT, UNREACHED, Battery, ended, in_child
from .mutants import ROOT, Mutant, mutants_at, sites_of
from .run import CAUGHT, NEVER_IMPORTED, SHARED, run_with

REPORT = ROOT / "reports" / "mutations"
LAST = ROOT / "out" / "mutations"  # what became of every mutant; not kept in the repository
EQUIVALENT = REPORT / "equivalent.csv"
UNIT, LAWS = "tests/unit", "tests/laws"
TESTS = {  # quick tests that know what is right: first those of the room's own equations, then, for what they miss, many more
    "cost": (tuple(f"{UNIT}/test_unit_{name}.py" for name in (
        "area", "bounds", "by_clock", "choice", "cores", "cost", "equations", "gpu_units", "input_stage", "package", "power",
        "power_limit", "tpu_terms", "traffic")),
             (UNIT, LAWS, "tests/schedule", "--ignore", f"{UNIT}/test_unit_explain.py")),
    "lower": ((f"{UNIT}/test_unit_lower.py", f"{UNIT}/test_unit_processor.py", f"{UNIT}/test_unit_op_kind.py"),
              (UNIT, LAWS, "tests/trace", "--ignore", f"{UNIT}/test_unit_explain.py")),
    "schedule": (("tests/schedule",), (UNIT, LAWS, "--ignore", f"{UNIT}/test_unit_explain.py")),
    "cache": (("tests/cache",), (UNIT,)),
}  # fmt: skip
PLAIN = ("-p", "no:cacheprovider", "-p", "no:terminal", "-p", "no:xdist", "--assert=plain", "-m", "not slow",
         "-W", "ignore::pytest.PytestAssertRewriteWarning", "--rootdir", str(ROOT))  # fmt: skip
IMPORTED_S = 300  # seconds of CPU for a mutant outside of functions, whose tests are collected anew


@dataclass(frozen=True)
class Outside:
    """A mutant as `run_with` takes a fault: the module is compiled from its source when the tests import it."""

    mutant: Mutant

    @property
    def file(self) -> str:
        return self.mutant.file

    @property
    def module(self) -> str:
        return self.file.removesuffix(".py").replace("/", ".")

    def put_into(self, source: str) -> str:
        return self.mutant.source


def tell(words: str) -> None:
    print(words, flush=True)


def judged(room: str, mutants: Sequence[Mutant], stage: int, results: Path) -> None:
    """Writes one line for each mutant, as soon as it is known what becomes of it with the tests of a stage."""
    import pytest

    outside: list[int] = []

    def note(mutant: Mutant, verdict: tuple[str, str]) -> None:
        with results.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps([*mutant.key, mutant.line, mutant.operator, *verdict]) + "\n")
        if verdict[0] not in (KILLED, TIMEOUT):
            tell(f"{verdict[0]:9} {mutant.file}:{mutant.line} {mutant.right}  ->  {mutant.wrong}")

    def work(battery: Battery) -> None:
        battery.learn(tell, LAST / f"{room}-reach-{stage}.json")
        tell(f"{len(battery.reach)} tests for {len(mutants)} mutants")
        for position, mutant in enumerate(mutants):
            verdict = battery.verdict(mutant)
            if verdict is None or verdict[0] == BROKEN:
                outside.append(position)
            else:
                note(mutant, verdict)
        order = sorted(battery.reach, key=lambda name: battery.reach[name].seconds)
        place.write_text(json.dumps([outside, [*order, *(battery.apart if stage == 0 else [])]]))

    place = results.with_suffix(".outside")
    place.unlink(missing_ok=True)
    child = os.fork()  # so that this process never imports the package, and every mutant outside of functions can
    if child == 0:
        code = 1
        try:
            code = int(pytest.main([*PLAIN, *TESTS[room][stage], f"archsim/{room}"], plugins=[Battery(room, work)]))
        finally:
            sys.stdout.flush()
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if not place.exists():
        raise SystemExit(f"the tests could not be run: pytest left with {os.waitstatus_to_exitcode(status)}")
    left, order = json.loads(place.read_text())
    if left:
        same = replace(mutants[left[0]], source=(ROOT / mutants[left[0]].file).read_text("utf-8"))
        code, said = in_child(lambda _: imported(same, order), IMPORTED_S)
        if code:
            raise SystemExit(f"the tests fail without a mutant: {code} {said}")
    for mutant in (mutants[position] for position in left):
        files = [name for name in order if name.startswith(mutant.file)]
        names = [*files, *[name for name in order if name not in files]]
        code, said = in_child(lambda _, mutant=mutant, names=names: imported(mutant, names), IMPORTED_S)
        note(mutant, (ended(code), said[-200:]))


def imported(mutant: Mutant, names: Sequence[str]) -> int:
    """10 where a test fails, or cannot even be collected, with the module compiled from the mutated source."""
    code = run_with(Outside(mutant), ["-x", "--tb=no", "-m", "not slow", *names])  # type: ignore[arg-type]
    return {0: 0, CAUGHT: 10, 2: 10, 4: 10, NEVER_IMPORTED: 0}.get(code, 77)  # 2: not collected, 4: a test is no longer there


def equivalent() -> dict[tuple[str, ...], str]:
    """The reviewed mutants that no test can tell from the source, with the reason."""
    return {(row["file"], row["function"], row["right"], row["wrong"]): row["reason"] for row in _rows(EQUIVALENT)}


def written(room: str, rows: Iterable[Sequence[str]], sampled: bool) -> float:
    """Writes the scores of the modules and the mutants that nothing noticed; the score of the room."""
    known, counts = equivalent(), {}
    survivors = []
    for file, function, right, wrong, line, operator, verdict, _ in rows:
        count = counts.setdefault(file, Counter())
        same = (file, function, right, wrong) in known and verdict != KILLED
        count["equivalent" if same else verdict] += 1
        if verdict != KILLED and verdict != TIMEOUT and not same:
            survivors.append((file, line, function, operator, right, wrong))
    REPORT.mkdir(parents=True, exist_ok=True)
    table = []
    total: Counter[str] = Counter()
    for file, count in sorted(counts.items()):
        total += count
        table.append(_row(file, count))
    table.append(_row(f"archsim/{room}", total))
    _write(REPORT / f"{room}.csv", ("module", "mutants", "killed", "timeouts", "survived", "equivalent", "score"), table)
    _write(REPORT / f"{room}-survivors.csv", ("file", "line", "function", "operator", "right", "wrong"), sorted(survivors))
    runs = [row for row in _rows(REPORT / "runs.csv") if row["room"] != room]
    runs.append({"room": room, "tool": f"cosmic-ray {version('cosmic-ray')}", "python": platform.python_version(),
                 "tried": "a sample" if sampled else "all", "score": str(table[-1][-1])})  # fmt: skip
    _write(REPORT / "runs.csv", tuple(runs[0]), [tuple(row.values()) for row in sorted(runs, key=lambda row: row["room"])])
    tell(f"archsim/{room}: {dict(total)} score {table[-1][-1]}" + (", of a sample" if sampled else ""))
    return float(str(table[-1][-1]))


def _row(module: str, count: Counter[str]) -> tuple[object, ...]:
    survived = count[SURVIVED] + count[UNREACHED] + count[BROKEN]
    noticed = count[KILLED] + count[TIMEOUT]
    score = noticed / (noticed + survived) if noticed + survived else 1.0
    return module, sum(count.values()), count[KILLED], count[TIMEOUT], survived, count["equivalent"], f"{score:.3f}"


def _rows(place: Path) -> list[dict[str, str]]:
    if not place.exists():
        return []
    with place.open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def _write(place: Path, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with place.open("w", newline="", encoding="utf-8") as lines:
        csv.writer(lines, lineterminator="\n").writerows([head, *rows])


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutations.score", description=__doc__.split("\n")[0])
    parser.add_argument("where", help=f"a room ({', '.join(TESTS)}) or one of its files, as cost/sm.py")
    parser.add_argument("--sample", type=int, default=0, help="try so many mutants only, spread evenly")
    parser.add_argument("--again", action="store_true", help="try those that were not noticed the last time")
    parser.add_argument("--quick", action="store_true", help="only with the tests of the room's own equations")
    parser.add_argument("--miss", type=float, default=1.0, help="fail where more than this share of the mutants is missed")
    parser.add_argument("--dry", action="store_true", help="leave the report as it is")
    asked = parser.parse_args(words)
    room, _, file = asked.where.partition("/")
    if room not in TESTS:
        parser.error(f"{room} is none of {', '.join(TESTS)}")
    for module in SHARED:
        __import__(module)
    places = [ROOT / "archsim" / room / file] if file else sorted((ROOT / "archsim" / room).glob("*.py"))
    files = [str(place.relative_to(ROOT)) for place in places]
    sites = [site for each in files for site in sites_of(each)]
    if asked.sample and asked.sample < len(sites):
        sites = [sites[i * len(sites) // asked.sample] for i in range(asked.sample)]
    mutants = mutants_at(sites)
    LAST.mkdir(parents=True, exist_ok=True)
    results = LAST / f"{room}.jsonl"
    here = {mutant.key for mutant in mutants}
    before = {key: row for key, row in read(results).items() if key in here} if asked.again else {}
    if asked.again:
        mutants = [mutant for mutant in mutants if not noticed(before.get(mutant.key))]
    new = results.with_suffix(".new")
    new.unlink(missing_ok=True)
    known, found = equivalent(), dict[tuple[str, ...], list[str]]()
    for stage in range(1 if asked.quick else len(TESTS[room])):
        left = [mutant for mutant in mutants if not noticed(found.get(mutant.key)) and not (stage and mutant.key in known)]
        if left:
            judged(room, left, stage, new)
        found = read(new)
    rows = {**before, **found}
    if not asked.dry:
        results.write_text("".join(json.dumps(row) + "\n" for row in rows.values()), "utf-8")
        written(room, rows.values(), bool(asked.sample))
    for key in known.keys() & {key for key, row in found.items() if noticed(row)}:
        tell(f"listed as equivalent, and noticed: {key}")
    missed = sum(not noticed(row) and key not in known for key, row in rows.items())
    tell(f"{len(rows)} mutants, {missed} missed")
    return int(missed > asked.miss * len(rows))


def noticed(row: Sequence[str] | None) -> bool:
    """Whether a mutant is known to have been noticed."""
    return row is not None and row[6] in (KILLED, TIMEOUT)


def read(place: Path) -> dict[tuple[str, ...], list[str]]:
    """What became of the mutants, by what they are called."""
    if not place.exists():
        return {}
    rows = [json.loads(line) for line in place.read_text("utf-8").splitlines()]
    return {tuple(row[:4]): row for row in rows}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
