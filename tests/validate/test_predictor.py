"""Other people's predictors: ids that last, files and commands that are refused by the line, scores that can be recomputed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from archsim.answers.scoreboard import coverage, record, sections
from archsim.base.errors import InputError, MissingFile
from archsim.base.files import data_folder
from archsim.calibration.constants import default
from archsim.evidence.case import Case
from archsim.evidence.columns import ID, case_line, with_ids
from archsim.evidence.family import PEER_ROWS, PEERS, peer_files, shipped_files
from archsim.evidence.readers import read
from archsim.evidence.sources import claims
from archsim.render.text import text_of
from archsim.validation.evaluation import ValidationSettings
from archsim.validation.scoreboard import Predictions, Scoreboard, from_command, from_file, scoreboard

Write = Callable[..., str]
SETTINGS = ValidationSettings(calibration=default(), by=("quantity",))

RULE = """
import json, sys
print("id,value")
for line in sys.stdin:
    case = json.loads(line)
    print(case["id"], case["batch"] / 400, sep=",")
"""


def lines(*values: float, note: str = "") -> list[str]:
    batches = (1, 8, 16, 32)
    return [f"me,alexnet,gtx_1080,caffe-cudnn5.1,inference,{batch},fp32,,1,,latency_s,{value!r},calibrate"
            for batch, value in zip(batches, values, strict=False)]  # fmt: skip


@pytest.fixture
def cases(write: Write) -> list[Case]:
    return with_ids(read(write(*lines(0.01, 0.02, 0.04, 0.08)))[0])


def ids(cases: list[Case]) -> list[str]:
    return [case.fields["id"] for case in cases]


def test_an_id_stands_for_the_conditions_and_not_for_the_value_or_the_place(write: Write) -> None:
    first = ids(with_ids(read(write(*lines(0.01, 0.02)))[0]))
    later = ids(with_ids(read(write(*reversed(lines(0.5, 0.7))))[0]))
    assert first == later[::-1]
    assert len(set(first)) == 2


def test_rows_of_equal_conditions_have_ids_of_their_own(write: Write) -> None:
    one, two = ids(with_ids(read(write(*lines(0.01), *lines(0.02)))[0]))
    assert two == f"{one}-2"


def test_a_case_tells_nothing_of_its_measured_value(cases: list[Case]) -> None:
    told = json.loads(case_line(cases[2]))
    assert told["row"]["batch"] == "16"
    assert "0.04" not in case_line(cases[2])
    shown = json.loads(case_line(with_ids(read(shipped_files(with_peers=True)[-2])[0])[0]))
    assert not {"value", "published_as", "notes", "source_ref"} & set(shown["row"])


@pytest.mark.parametrize(("content", "said"), [
    ("id,value\n{0},0.01\n{0},0.02\n", "line 3: id '{0}' stands on line 2 already"),
    ("id,value\nabc,0.01\n", "line 2: no row has the id 'abc'"),
    ("id,value\n{0},nan\n", "line 2: value 'nan' is not a number"),
    ("id,value\n{0},\n", "line 2: no value; leave out the rows"),
    ("id,value\n{0},0\n", "line 2: value '0' is not above zero"),
    ("id,value\n{0},-1\n", "line 2: value '-1' is negative"),
    ("id,latency\n{0},1\n", "column 'value' is missing"),
    ("id,value,colour\n{0},1,red\n", "column 'colour' is not known"),
    ("id,value,low\n{0},1,1\n", "give both columns low and high"),
    ("id,value,low,high\n{0},1,2,1\n", "low and high are no interval"),
    ("id,value,low,high\n{0},1,2,\n", "low and high are no interval"),
])  # fmt: skip
def test_a_bad_file_is_refused_by_the_line(content: str, said: str, cases: list[Case], tmp_path: Path) -> None:
    known = ids(cases)
    place = tmp_path / "mine.csv"
    place.write_text(content.format(known[0]))
    with pytest.raises(InputError) as caught:
        from_file(str(place), known)
    assert said.format(known[0]) in str(caught.value)


def board(cases: list[Case], tmp_path: Path, text: str) -> Scoreboard:
    place = tmp_path / "mine.csv"
    place.write_text(text)
    return scoreboard(cases, (), [from_file(str(place), ids(cases))], SETTINGS)


def test_a_score_is_of_the_rows_that_are_answered_and_says_how_many(cases: list[Case], tmp_path: Path) -> None:
    first, second, *_ = ids(cases)
    table = f"id,value,low,high\n{first},0.011,0.009,0.012\n{second},0.03,0.029,0.031\n"
    found = board(cases, tmp_path, f"# mine, of a table\n{table}")
    names = [e.predictions.name for e in found.entrants]
    assert names == ["archsim", "roofline", "mine"]
    mine = found.entrants[2]
    (group,) = mine.overall
    assert group.score.n == mine.answered == 2
    assert group.score.mape == pytest.approx((0.1 + 0.5) / 2)
    assert group.score.coverage == 0.5
    assert set(group.baselines) == {"archsim", "roofline"}
    assert coverage(found) == [("mine", "2 of 4 rows: 50 %; the other 2 are in no score of it")]
    assert mine.predictions.about == "mine, of a table"
    assert "mine, of a table" in text_of(sections(found), 1)


def test_predictors_of_different_rows_are_scored_on_their_own_and_compared_on_the_common_ones(
    cases: list[Case], tmp_path: Path
) -> None:  # fmt: skip
    known, given = ids(cases), []
    for name, rows in (("early", known[:3]), ("late", known[2:])):
        place = tmp_path / f"{name}.csv"
        place.write_text("id,value\n" + "".join(f"{own},0.04\n" for own in rows))
        given.append(from_file(str(place), known))
    found = scoreboard(cases, (), given, SETTINGS)
    by_name = {e.predictions.name: e for e in found.entrants}
    assert {name: e.overall[0].score.n for name, e in by_name.items()} == {"archsim": 4, "roofline": 4, "early": 3, "late": 2}
    assert [groups[0].score.n for groups in found.common] == [1, 1, 1, 1]
    assert found.common[2][0].score.mape == pytest.approx(0.0, abs=1e-12)
    text = text_of(sections(found))
    assert "The rows that all answer" in text
    assert text.index("  archsim ") < text.index("  late ")  # which answers fewer rows


def test_a_command_reads_cases_and_prints_values(cases: list[Case], tmp_path: Path) -> None:
    script = tmp_path / "rule.py"
    script.write_text(RULE)
    found = from_command(f"{sys.executable} {script}", cases, ids(cases))
    assert found.name == "rule.py"
    assert [found.rows[own][0] for own in ids(cases)] == [1 / 400, 8 / 400, 16 / 400, 32 / 400]
    assert found.seconds is not None
    assert 0 < found.seconds < 10


@pytest.mark.parametrize(("command", "said"), [
    ("no-such-predictor-here", "no such command"), (f'{sys.executable} -c "import sys; sys.exit(3)"', "ended with status 3"),
    (f'{sys.executable} -c "pass"', "printed nothing for 4 cases"), ('python "predict', "is no command line"),
])  # fmt: skip
def test_a_command_that_fails_or_is_none_is_refused(cases: list[Case], command: str, said: str) -> None:
    with pytest.raises((InputError, MissingFile), match=said):
        from_command(command, cases, ids(cases))


@pytest.fixture(scope="module")
def peers() -> tuple[list[Case], dict[str, Predictions]]:
    """The rows that other tools have predicted, and their published predictions."""
    rows = [case for name in PEER_ROWS for case in with_ids(read(data_folder(PEERS).joinpath(name))[0])]
    return rows, {one.name: one for one in (from_file(place, ids(rows)) for place in peer_files())}


def test_published_predictions_are_of_shipped_rows_and_say_where_they_stand(peers: Any) -> None:
    rows, found = peers
    assert {name: len(one.rows) for name, one in found.items()} == {
        "habitat": 29, "li_et_al": 29, "neusight": 29, "neusight_of_pipeweave": 84, "pipeweave": 84}  # fmt: skip
    assert len(rows) == 29 + 84
    assert all("github.com" in one.about and one.seconds is None for one in found.values())


def error_of(peers: Any, name: str, label: str, hardware: str, batch: int, metric: str = "latency_s") -> float:
    """What a published prediction of an inference is off, of the value that stands here."""
    rows, found = peers
    own = [case for case in rows if (case.label.partition("@")[0], case.hardware, case.batch, case.metric, case.task) == (
        label, hardware, batch, metric, "inference")]  # fmt: skip
    assert len(own) == 1
    return float(found[name].rows[own[0].fields[ID]][0] / own[0].measured - 1.0)


def test_published_errors_follow_from_published_predictions(peers: Any) -> None:
    """The authors of NeuSight print 7.2 % and 32.5 % for these two cells."""
    assert error_of(peers, "neusight", "gpt3_xl_3072", "tesla_v100_pcie_32gb", 2) == pytest.approx(0.072, abs=5e-4)
    assert error_of(peers, "neusight", "bert_large", "tesla_t4", 16) == pytest.approx(0.325, abs=5e-4)
    # PipeWeave's authors print errors against the nearest of five runs; here it is the median.
    assert error_of(peers, "pipeweave", "qwen2_5_14b", "h100_sxm5_80gb", 8, "ttft_s") == pytest.approx(-0.1168, abs=5e-3)
    assert error_of(peers, "pipeweave", "llama_3_1_70b", "a100_sxm4_80gb", 64, "e2e_s") == pytest.approx(-0.0045, abs=5e-3)
    assert error_of(peers, "neusight_of_pipeweave", "qwen3_32b", "a100_sxm4_80gb", 48, "e2e_s") == pytest.approx(0.40, abs=0.02)


def test_served_runs_of_peers_are_predicted_and_scored_by_phase(peers: Any) -> None:
    rows, found = peers
    own = [case for case in rows if case.label == "qwen2_5_14b" and case.hardware == "a40"]
    board = scoreboard(own, (), list(found.values()), SETTINGS)
    assert [one.predictions.name for one in board.entrants] == ["archsim", "neusight_of_pipeweave", "pipeweave"]
    assert {group.by["quantity"] for group in board.entrants[0].overall} == {"prefill", "decode", "end to end"}
    assert sum(group.score.n for group in board.entrants[0].overall) == 6


def test_claims_stand_apart_from_scores_and_each_says_where_it_was_read() -> None:
    assert len({one.tool for one in claims()}) == len(claims()) >= 14
    assert all(one.url.startswith("https://") and one.says and one.here for one in claims())
    silent = scoreboard((), (), (), SETTINGS)
    text = text_of(sections(replace(silent, claims=claims())), 2)
    assert "What other tools say of themselves" in text
    assert claims()[0].says in text
    assert "say of themselves" not in text_of(sections(silent), 2)
    assert record(replace(silent, claims=claims()))["claims"][0]["tool"] == "LLMCompass"


def test_nothing_is_fitted_to_rows_of_peers() -> None:
    assert not [place for place in shipped_files() if PEERS in str(place)]


def test_the_command_line_scores_and_writes(run: Callable[..., tuple[int, str, str]], write: Write, tmp_path: Path) -> None:
    rows, told = write(*lines(0.01, 0.02), name="rows.csv"), tmp_path / "cases.jsonl"
    assert run("validate", "--measurements", rows, "--cases", str(told))[0] == 0
    names = [json.loads(line)["id"] for line in told.read_text().splitlines()]
    mine = tmp_path / "mine.csv"
    mine.write_text(f"id,value\n{names[0]},0.02\n")
    assert "1 of 2 rows: 50 %" in run("validate", "--measurements", rows, "--predictor", str(mine))[1]
    code, _, err = run("validate", "--measurements", rows, "--predictor", str(mine), "--without", "waves")
    assert code == 2
    assert "about the model of archsim" in err
