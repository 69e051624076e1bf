"""Rows of whole transformers: which graph runs, where the loss is, what becomes of the gradients."""

from __future__ import annotations

import pytest

from archsim.evidence.readers import read

HEAD = "source,network,hardware,stack,task,batch,precision,metric,value,seq_len"


@pytest.fixture
def cases(tmp_path):
    rows = [f"neusight,bert_large,tesla_v100_pcie_32gb,pytorch-2-hf-eager,{task},2,fp32,latency_s,0.1,64"
            for task in ("inference", "forward", "backward")]  # fmt: skip
    file = tmp_path / "mine.csv"
    file.write_text("\n".join([HEAD, *rows]) + "\n")
    found, skips = read(file)
    assert not skips
    return {case.fields["task"]: case for case in found}


def test_training_runs_the_heads_of_pretraining(cases):
    """A word for each of the tokens, where inference tells two classes."""
    names = {task: {op.name for op in case.ops} for task, case in cases.items()}
    assert "words" not in names["inference"]
    assert {"words", "classes"} <= names["forward"]


def test_gradients_are_added_to_those_of_the_run_before(cases):
    updates = [op for op in cases["backward"].ops if op.phase == "update"]
    assert {op.kind.optimiser for op in updates} == {"accumulate"}
    assert len(updates) > 24 * 8
