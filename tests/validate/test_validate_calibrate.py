"""Fits find constants that made the rows, keep off the test split, say when a bound stops them; intervals cover."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from archsim.calibration.constants import FitRecord, default, dump, load
from archsim.device.catalog import find
from archsim.evidence.case import TIMERS, UnitPattern
from archsim.evidence.readers import read_files
from archsim.validation.crossvalidate import NOT_FITTED, Refits, cross_validate, selection, thinned, with_times
from archsim.validation.fit import CannotFit, Problem, bounds_reached, fit, fittable, kept, rows_hash
from archsim.validation.interval import class_of, intervals, intervals_of, with_intervals
from archsim.validation.predict import predict


@pytest.fixture(scope="module")
def rows(corpus):
    wanted = [c for c in corpus[0] if c.source == "jcjohnson" and c.stack_id == "torch7-cudnn5.1" and c.hardware != "gtx_1080"]
    return wanted[::3]


def made_by(cases, calibration):
    """The cases as if `calibration` were the truth."""
    return [replace(c, measured=float(p)) for c, p in zip(cases, predict(cases, calibration), strict=True)]


def test_a_fit_finds_the_constant_that_made_the_rows(rows):
    start = default().before_fit()
    truth = start.with_values({"conv.cudnn5": 0.6})
    found = fit(made_by(rows, truth), start, ["conv.cudnn5"])
    assert found["conv.cudnn5"] == pytest.approx(0.6, rel=0.05)
    assert found.fit.median_after < 0.02 < found.fit.median_before
    assert found.constants["conv.cudnn5"].fitted


def test_watched_rows_move_nothing(rows):
    start = default().before_fit()
    honest = made_by(rows, start)
    doctored = [replace(c, split="watched", measured=100 * c.measured) for c in honest]
    alone = fit(honest, start, ["conv.winograd"])
    beside = fit([*honest, *doctored], start, ["conv.winograd"])
    assert beside["conv.winograd"] == alone["conv.winograd"]
    with pytest.raises(CannotFit, match="split watched"):
        fit(doctored, start, ["conv.winograd"])


def test_a_constant_that_ends_at_its_bound_is_named(rows):
    start = default().before_fit()
    slow = [replace(c, measured=50 * c.measured) for c in made_by(rows, start)]
    found = fit(slow, start, ["conv.winograd", "conv.cudnn5"])
    assert set(found.fit.at_bound) >= {"conv.cudnn5"}
    limits = found.constants
    assert all(limits[name].low <= found[name] <= limits[name].high for name in found.fit.names)
    assert bounds_reached(found, ["conv.cudnn5"]) == ("conv.cudnn5",)


def test_a_constant_that_no_row_feels_cannot_be_fitted(rows):
    with pytest.raises(CannotFit, match="begins with"):
        fit(rows, default().before_fit(), ["cpu."])


def test_a_fitted_calibration_survives_its_file(rows, tmp_path):
    start = default().before_fit()
    found = replace(fit(rows, start, ["conv.cudnn5"]), version="trial")
    place = tmp_path / "calibration.toml"
    place.write_text(dump(found))
    again = load(place)
    assert again.constants == found.constants
    assert again.fit == found.fit
    assert again.fit.rows_hash == rows_hash(rows)
    assert again.before_fit().constants["conv.cudnn5"].value == start["conv.cudnn5"]


def test_a_row_is_predicted_without_the_rows_of_its_fold(rows):
    """Rows of one device are made ten times slower: held out, they must not teach their own prediction."""
    start = default().before_fit()
    honest = made_by(rows, start)
    odd = honest[0].hardware
    doctored = [replace(c, measured=10 * c.measured) if c.hardware == odd else c for c in honest]
    predicted = cross_validate(doctored, doctored, start, "hardware", ["conv.cudnn5"])
    inside = np.array([c.hardware == odd for c in honest])
    truth = np.array([c.measured for c in honest])
    assert np.allclose(predicted[inside], truth[inside], rtol=0.02)
    assert not np.allclose(predicted[~inside], truth[~inside], rtol=0.05)


def test_thinning_keeps_every_source_and_no_watched_row(corpus):
    cases, _ = corpus
    few = thinned(cases, 5)
    assert {c.source for c in few} == {c.source for c in cases if c.fitted}
    assert all(c.fitted for c in few)
    assert {c.split for c in thinned(cases, 5, unfitted=True) if not c.fitted} == {"watched", "doubted"}  # intervals


def test_kinds_that_are_only_scored_are_not_fitted(corpus):
    """Recurrent layers: of all rows that a fit would take those of LSTM are left."""
    cases, _ = corpus
    timed = {op.kind.op for case in cases for op in case.ops}
    fitted = {op.kind for case in thinned(cases, len(cases)) if len(case.ops) == 1 for op in case.ops}
    assert {*NOT_FITTED, "lstm"} <= timed
    assert {kind.op for kind in fitted}.isdisjoint(NOT_FITTED)
    assert "lstm" in {kind.op for kind in fitted}
    assert not [kind for kind in fitted if getattr(kind, "window", 0)]


def test_errors_that_grow_with_a_feature_are_found_again_and_covered_at_each_value(rows):
    """Of half of the rows a roofline explains all, of the others, whose errors are three times as large, half."""
    generator, count = np.random.default_rng(2), 4000
    many = [replace(rows[i % len(rows)], metric="latency_s", measured=1.0) for i in range(count)]
    explained = np.where(np.arange(count) // len(rows) % 2, 0.5, 1.0)

    def drawn():
        return np.exp(generator.normal(0.0, 0.2, count) * np.where(explained < 1.0, 3.0, 1.0))

    seen, new = drawn(), drawn()
    found = with_intervals(default(), many, seen, seen * explained, "trial")
    assert math.exp(0.5 * found.slopes["gpu network"]["unexplained"]) == pytest.approx(3.0, rel=0.1)
    low, high = intervals([replace(case, source="new") for case in many], new, new * explained, found)
    inside = (low < 1.0) & (high > 1.0)
    assert 0.77 < inside[explained < 1.0].mean() < 0.83
    assert 0.77 < inside[explained == 1.0].mean() < 0.83


def test_rows_to_which_nothing_is_fitted_tell_how_far_others_are(rows):
    """A card with rows in view, another one of its architecture without, whose errors are twice as large."""
    near = [replace(rows[0], split="calibrate", source="a", measured=1.0)] * 40
    far = [replace(rows[0], split="watched", source=source, hardware="titan_xp", spec=find("titan_xp"), measured=1.0)
           for source in "bcd" for _ in range(40)]  # fmt: skip
    predicted = np.where(np.arange(160) < 40, np.exp(0.1), np.exp(0.2))
    spreads, slopes, evidence = intervals_of([*near, *far], predicted, predicted, 0.8, "trial")
    factor = math.exp(sum(slopes["gpu network"].values()))
    assert factor == pytest.approx(2.0, rel=1e-3)
    assert spreads[class_of(near[0])].high * factor == pytest.approx(0.2, rel=1e-3)
    assert {one.platform.device for behind in evidence.values() for one in behind} == {near[0].spec.identity.id}


def test_powers_of_few_sources_have_the_wider_of_their_own_errors_and_those_of_all_powers(rows):
    """Networks come from one source, which agrees within 1 %, kernels from one that does not, units from three of 10 % each."""
    def of(source, label, error):
        timer = TIMERS["device" if label == "kernel" else "host_sync"]
        made = replace(rows[0], metric="power_w", source=source, measured=1.0, timer=timer,
                       pattern=UnitPattern(shares={}, core=1e9) if label == "units" else None)  # fmt: skip
        return made, np.exp(error)
    made = [of("a", "network", 0.01)] * 40 + [of("b", "kernel", 0.4)] * 40
    made += [of(source, "units", 0.1) for source in "cde"] * 40
    cases, predicted = [case for case, _ in made], np.array([value for _, value in made])
    found = intervals_of(cases, predicted, np.full(len(cases), np.nan), 0.8, "trial")[0]
    assert found["gpu units"].high == pytest.approx(0.1)
    assert found["gpu kernel power"].high == pytest.approx(0.4)
    assert found["gpu power"].high == pytest.approx(0.4)
    assert "of others" in found["gpu power"].origin


ROWS = ("me,alexnet,i7_6700k,onnxruntime-cpu,inference,1,fp32,4,1,,latency_s,0.012,calibrate",
        "me,vgg_16,i7_6700k,onnxruntime-cpu,inference,1,fp32,4,1,,latency_s,0.12,calibrate")  # fmt: skip


def test_what_a_fit_could_not_change_is_said_and_kept(write, tmp_path):
    from click.testing import CliRunner

    from archsim.cli.validate import calibrate_command

    pytest.importorskip("scipy")
    out = str(tmp_path / "constants.toml")
    found = CliRunner().invoke(
        calibrate_command,
        ["--measurements", write(*ROWS * 3), "--fit", "cpu.", "--fit", "gemm.", "--intervals", "source", "--out", out],
    )
    assert found.exit_code in (0, 1), found.output
    assert "unchanged, because no row depends on them: " in found.output
    assert "gemm.kappa" in found.output
    assert "unchanged, because their range is one value: " in found.output
    assert "unchanged, because the rows do not tell them from others or at all: " in found.output
    again = load(out)
    assert {one.source for one in again.evidence["cpu inference"]} == {"me"}
    assert again.spreads == default().spreads  # so few rows have no quantiles of their own
    before, after = default().constants, again.constants
    moved = [name for name in before if before[name].value != after[name].value]
    assert moved == ["cpu.mlas"]  # what these rows do not tell is as it was, not at its prior


def test_a_fit_to_the_corpus_leaves_at_their_priors_what_its_rows_do_not_tell():
    given = default()
    start = given.before_fit(("cpu.sibling", "cpu.wake_s"))
    record = FitRecord(rows=2, kinds=("cpu",), rows_hash="", median_before=0.1, median_after=0.1, at_bound=(), covariance=(),
                       names=("cpu.sibling", "cpu.wake_s"))  # fmt: skip
    shares = {"cpu.sibling": 0.9, "cpu.wake_s": 0.1}
    told = {name: replace(start.constants[name], identified=share) for name, share in shares.items()}
    answer = replace(start, constants={**start.constants, **told}, fit=record)
    for only_told, wake in ((False, answer), (True, given)):
        constants = kept(answer, given, only_told).constants
        assert constants["cpu.wake_s"] == wake.constants["cpu.wake_s"]
        assert constants["cpu.sibling"] == answer.constants["cpu.sibling"]


def test_rows_of_ops_that_take_no_time_are_left_out_of_a_fit(write):
    head = "source,network,hardware,stack,task,batch,precision,threads,devices,metric,value,split,op"
    row = "measured_here_ops,alexnet,i7_6700k,onnxruntime-cpu,inference,1,fp32,4,1,latency_s,9e-06,calibrate"
    cases, _ = read_files([write(f"{row},pool5.flatten", f"{row},conv1+relu1", head=head)])
    assert [case.fields["op"] for case in fittable(cases, default().before_fit())] == ["conv1+relu1"]


@pytest.mark.slow
def test_every_row_of_the_corpus_can_be_fitted(corpus):
    times = thinned(with_times(corpus[0]))
    assert len(fittable(times, default().before_fit())) == len(times)


def test_a_fit_without_some_rows_from_the_slopes_of_all_ends_where_a_whole_one_does(rows):
    """Rows of one device are twice as slow: without them the constant is that of a fit that never had them."""
    start = default().before_fit()
    odd = rows[0].hardware
    cases = [replace(c, measured=2 * c.measured) if c.hardware == odd else c for c in made_by(rows, start)]
    names = ["conv.cudnn5"]
    everything = fit(cases, start, names)
    without = Refits(cases=cases, start=start, prefixes=names, optimum=everything).without(lambda case: case.hardware == odd)
    alone = fit([c for c in cases if c.hardware != odd], start, names)
    assert abs(everything["conv.cudnn5"] / alone["conv.cudnn5"] - 1) > 0.02
    assert without["conv.cudnn5"] == pytest.approx(alone["conv.cudnn5"], rel=0.01)


def test_without_any_row_a_constant_has_its_prior(rows):
    start = default().before_fit()
    refits = Refits(cases=rows, start=start, prefixes=["conv.cudnn5"], optimum=default())
    assert refits.without(lambda case: True)["conv.cudnn5"] == start.constants["conv.cudnn5"].prior


def test_processes_share_the_slopes(rows):
    problem = Problem.of(rows, default().before_fit(), ["conv.", "stream."])
    logs = problem.logs(default())
    assert np.array_equal(problem.slopes(logs), problem.slopes(logs, workers=2))


def test_a_constant_that_one_source_tells_and_others_contradict_is_removed_first(rows):
    """Four sources: `shared` moves the errors of all alike, `own` those of the first alone, by as much as its meter is off."""
    made = [replace(rows[i % len(rows)], source="abcd"[i % 4]) for i in range(80)]
    first = np.array([case.source == "a" for case in made])
    slopes = np.column_stack([np.ones(80), np.where(first, 1.0, 0.5)])
    errors = np.where(first, 0.2, -0.2) - slopes @ (0.4, 0.2)
    start = default().with_values({"conv.cudnn5": 0.82})
    refits = Refits(cases=made, start=start.before_fit(), prefixes=["conv.cudnn5", "conv.winograd"], optimum=start)
    refits.__dict__.update(slopes=slopes, errors=errors, logs=refits.problem.prior + np.array([0.4, 0.2]))
    whole, *path = selection(refits)
    assert [removal.name for removal in path] == [refits.problem.names[1], refits.problem.names[0]]
    assert path[0].unseen < whole.unseen < path[1].unseen
