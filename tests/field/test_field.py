"""What people who do the job type, made small, and the answer that is right: every case is a kind of fault that was found by use.

A case is a row of `cases/*.toml`:

    what      the kind, as a sentence
    run       a command line without `archsim`; `{in}` is the folder of inputs
    files     files to write beside it, as for hostile inputs
    code      exit code, 0 if not given
    gives     values of the JSON answer by path ("rows.0.latency_s"; `#` is a length): a value or a range [low, high]
    prints    texts on standard output
    says      texts on standard error; `a|b` is either
    never     texts on neither
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from ..hostile.run import at, furnish

HERE = Path(__file__).parent
CASES = [case for path in sorted((HERE / "cases").glob("*.toml")) for case in tomllib.loads(path.read_text("utf-8"))["case"]]
PARTS = re.compile(r"[\d.] [munpµ](?:B|FLOP|OP)\b(?!/)")  # of what has none: whatever is asked, bytes are whole
UNROUNDED = re.compile(r"\d\.\d{7,}|(?<![\w,.])\d{8,}")
KEYS = {"what", "run", "files", "code", "gives", "prints", "says", "never"}


def value_at(answer: Any, path: str) -> Any:
    """What an answer holds at a path of keys and places in lists."""
    for word in path.split("."):
        answer = len(answer) if word == "#" else answer[int(word)] if isinstance(answer, list) else answer[word]
    return answer


def is_as(value: Any, right: Any) -> bool:
    """Whether a value is the right one, or lies in the right range."""
    if isinstance(right, list) and not isinstance(value, list):
        return isinstance(value, int | float) and bool(right[0] <= value <= right[1])
    return bool(value == pytest.approx(right, rel=1e-9) if isinstance(right, float) else value == right)


def problems(case: dict[str, Any], folder: Path) -> list[str]:
    """Run a case in a folder; what is wrong with its answer, in sentences."""
    wrong = [f"{key} is no key of a case" for key in case.keys() - KEYS]
    furnish(folder, case.get("files", {}))
    found = at(folder, case["run"].replace("{in}", str(HERE / "inputs")))
    if found.code != case.get("code", 0):
        wrong.append(f"ends in {found.code}, not in {case.get('code', 0)}")
    wrong += [f"does not print {text!r}" for text in case.get("prints", ()) if text not in found.out]
    wrong += [f"does not say {text!r}" for text in case.get("says", ()) if not any(one in found.err for one in text.split("|"))]
    wrong += [f"speaks of {text!r}" for text in case.get("never", ()) if text in found.out + found.err]
    wrong += [f"counts in parts: {text!r}" for text in PARTS.findall(found.out + found.err)]
    if case["run"].startswith("explain") and "--json" not in case["run"]:
        wrong += [f"rounds no {text!r}" for text in UNROUNDED.findall(found.out)]
    answer = json.loads(found.out) if case.get("gives") and not wrong else {}
    for path, right in case.get("gives", {}).items() if answer else ():
        value = value_at(answer, path)
        if not is_as(value, right):
            wrong.append(f"{path} is {value}, right is {right}")
    return [f"{one}\n{found.err[-2000:]}" for one in wrong]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES, ids=[case["what"] for case in CASES])
def test_answer_is_right(case: dict[str, Any], tmp_path: Path) -> None:
    found = problems(case, tmp_path)
    assert not found, f"archsim {case['run']}\n" + "\n".join(found)


def test_a_case_that_fails_is_noticed(tmp_path: Path) -> None:
    wrong = {"what": "", "run": "estimate --net alexnet --hw tegra_x1 --json", "never": ["alexnet"], "code": 1}
    assert len(problems(wrong, tmp_path)) == 2
    wrong = {"what": "", "run": "estimate --net alexnet --hw tegra_x1 --json", "gives": {"batch": 2, "latency_s": [1.0, 2.0]}}
    assert len(problems(wrong, tmp_path)) == 2
