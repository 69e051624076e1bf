"""Each measured value in a line of its own: what the words of its row give and why it is missed."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable

import numpy as np
import pytest

from archsim.base.errors import InputError
from archsim.base.schema import rows_of
from archsim.calibration.constants import default
from archsim.evidence.readers import read_files
from archsim.evidence.sources import Miss, misses, reason_of
from archsim.validation.baseline import plain_request, plain_values

Run = Callable[..., tuple[int, str, str]]
WHITEPAPER = ("validate", "--source", "nvidia_tx1_wp", "--by", "cell", "--baseline", "none")


def test_each_measured_value_has_a_line_in_the_order_of_its_file(run: Run) -> None:
    code, out, _ = run(*WHITEPAPER)
    lines = [line for line in out.splitlines() if line.startswith(("  tegra_x1, ", "  i7_6700k, "))]
    assert (code, len(lines)) == (0, 12)
    assert [line.split("  ")[-1] for line in lines[5:8]] == ["yes", "yes", "yes"]
    assert "47 img/s" in lines[0]
    assert "5.5 W" in lines[6]
    assert out.splitlines()[0] == "12 measured values beside their predictions · nvidia_tx1_wp · alexnet · inference"


def test_the_words_of_a_row_alone_are_a_baseline(run: Run) -> None:
    words = ("validate", "--source", "shi2016_t7", "--net", "lstm_ptb", "--stack", "cntk-cudnn5.1", "--by", "cell",
             "--baseline", "plain")  # fmt: skip
    code, out, _ = run(*words)
    assert code == 0
    assert "batch 4 samples, not 128 samples" in out
    rows = list(csv.DictReader(io.StringIO(run(*words, "--csv")[1])))
    assert len(rows) == 3
    for row in rows:
        assert float(row["plain_error"]) == pytest.approx(float(row["plain"]) / float(row["measured"]) - 1)
        assert "host CPU" in row["conditions"]


def test_without_conditions_of_a_source_its_words_give_the_same() -> None:
    cases = [case for case in read_files(())[0] if case.source == "nvidia_tx1_wp" and case.hardware == "i7_6700k"]
    values, lacking = plain_values(cases, default(), "analytical")
    assert np.isfinite(values).all()
    assert lacking == [()] * len(cases)


def test_the_words_lead_to_the_graph_that_the_framework_builds() -> None:
    for network, stack in (("alexnet_s", "caffe-openblas"), ("resnet_56", "cntk-cudnn5.1"), ("alexnet_s", "mxnet-openblas")):
        case = next(case for case in read_files(())[0]
                    if case.source == "shi2016_t7" and case.label == network and case.fields["stack"] == stack)  # fmt: skip
        assert plain_request(case, default(), "analytical").trace.name == case.trace.name != network


def test_what_is_no_network_on_one_device_has_no_plain_prediction() -> None:
    every = read_files(())[0]
    cases = [case for case in every if case.work is None or case.group is not None][:3]
    cases += [case for case in every if case.work is not None and "network" not in case.fields][:1]  # of a table with other words
    values, lacking = plain_values(cases, default(), "analytical")
    assert np.isnan(values).all()
    assert lacking == [()] * 4


# -------------------------------------------------------------------------------------------------------------- reasons


def test_every_shipped_reason_is_about_a_row() -> None:
    cases = [case for case in read_files(())[0] if case.work is not None]
    assert [miss for miss in misses() if not any(miss.matches(case) for case in cases)] == []


def test_only_an_error_above_a_quarter_has_a_reason() -> None:
    cases = read_files(())[0]
    for miss in misses():
        case = next(case for case in cases if miss.matches(case))
        sign = -1.0 if miss.predicted in ("too fast", "too low") else 1.0
        assert reason_of(case, 0.2 * sign) == ""
        assert reason_of(case, 0.9 * sign) != ""


def test_a_reason_without_a_source_or_with_an_unknown_key_is_refused() -> None:
    text = '[[miss]]\nreason = "x"\nnet = "alexnet"\n[[miss]]\nsource = "a"\nreason = "b"\npredicted = "wrong"\n'
    with pytest.raises(InputError, match=r"misses\.toml") as refused:
        rows_of(Miss, "miss", text, "misses.toml")
    assert "miss 1: source" in str(refused.value)
    assert "miss 1: net" in str(refused.value)
    assert "miss 2: predicted" in str(refused.value)
