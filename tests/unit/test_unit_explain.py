"""An explanation says what the model does: its terms give the op's time, its texts give its terms, its list is complete."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from archsim.base.errors import ArgumentError, Unsupported
from archsim.base.units import UNITS
from archsim.estimation.estimate import estimate_of
from archsim.estimation.pipeline import run, waiting
from archsim.estimation.request import Request, make_request
from archsim.explain.equation import Equation, evaluate, names_in, solve
from archsim.explain.kernel import ExplainedRun, energy_steps, steps_of
from archsim.explain.layer import Explanation, explain, slowest
from archsim.explain.reader import COLUMN, COMPUTED, CONSTANT, FIXED, SETTING, SPEC, Reader
from archsim.explain.value import Value, tree_of
from tests.shipped import line, written

ATTENTION = [
    line("linear", "q", "x", ["N", 64, 32]),
    line("attention", "a", "q q q", ["N", 64, 32], heads=2),
    line("reshape", "flat", "a", ["N", 2048]),
    line("softmax", "s", "flat", ["N", 2048]),
]
CELLS = [
    ("alexnet", "gtx_1080", {"batch": 16, "task": "training_step"}),
    ("alexnet", "tegra_x1", {"batch": 128, "precision": "fp16"}),
    ("alexnet", "tesla_m40", {"batch": 8, "task": "training_step", "stack": "mxnet-cudnn5.1"}),
    ("googlenet", "tesla_k40", {"batch": 16, "task": "forward_backward", "stack": "caffe-cudnn4"}),
    ("lstm_32", "tesla_k80", {"batch": 64, "task": "training_step"}),
    ("resnet_50", "tesla_v100_sxm2", {"batch": 8, "precision": "fp16", "stack": "pytorch-2"}),
    ("resnet_18", "tesla_v100_sxm2", {"stack": "pytorch-2", "graph": True}),
    ("vgg_16", "gtx_1080", {"stack": "ideal"}),
    ("alexnet", "i7_6700k", {"batch": 4, "task": "training_step", "threads": 2}),
    ("resnet_50", "xeon_e5_2630_v3", {"precision": "fp16", "stack": "caffe-openblas"}),
    ("alexnet", "xeon_e5_2630_v3_2s", {"batch": 4, "task": "training_step", "stack": "torch7-cpu"}),
    ("alexnet", "xeon_e5_2630_v3_2s", {"stack": "caffe-openblas", "threads": 8}),
    ("googlenet", "xeon_e5_2666_v3", {"batch": 16, "stack": "caffe-openblas"}),
    ("resnet_18", "xeon_platinum_8124m", {"batch": 2, "stack": "pytorch-cpu"}),
    ("vgg_16", "tesla_v100_pcie_32gb", {"batch": 8, "power_limit": 120.0}),
    ("alexnet", "tegra_x2", {"batch": 8, "precision": "fp16", "power_mode": "maxq"}),
    ("resnet_18", "h100_sxm5_80gb", {"batch": 64, "precision": "bf16", "stack": "pytorch-2"}),
    ("attention", "gtx_1080", {"batch": 2}),
    ("attention", "i7_6700k", {"batch": 2}),
]
MOST = 5  # ops of a network that are looked at


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("traces") / "tiny.jsonl"
    path.write_text(written(*ATTENTION, x=["N", 64, 32]))
    return str(path)


@pytest.fixture(scope="module", params=CELLS, ids=lambda cell: f"{cell[0]}-{cell[1]}")
def cell(request: pytest.FixtureRequest, trace: str) -> tuple[Request, list[tuple[float, Explanation]]]:
    """A request, and the time that `estimate` gives each of its ops beside the explanation of the op."""
    net, hw, choices = request.param
    request = make_request(trace if net == "attention" else net, hw, **choices)
    times = [op.time_s for op in estimate_of(request, references=False).ops]
    every = range(0, len(times), max(1, len(times) // MOST))
    return request, [(times[i], explain(request, request.trace.ops[i].name)) for i in every]


def test_the_terms_of_an_explanation_give_the_time_of_the_estimate(cell):
    for time, found in cell[1]:
        kernels = sum(kernel.time_s for kernel in found.kernels)
        assert kernels == pytest.approx(found.device_s, rel=1e-9)
        assert kernels + found.wait_s == pytest.approx(time, rel=1e-9)
        for kernel in found.kernels:
            assert {step.name: step.right for step in kernel.steps}["time"] == pytest.approx(kernel.time_s, rel=1e-9)


def test_every_equation_gives_the_value_that_the_model_has(cell):
    for _, found in cell[1]:
        for step in [*found.host, *(step for kernel in found.kernels for step in (*kernel.steps, *kernel.energy))]:
            assert step.text, f"{found.layer}: no equation for {step.name}"
            assert step.right == pytest.approx(step.value, rel=1e-9, abs=1e-18), f"{found.layer}: {step.name} = {step.text}"


def test_the_energies_of_the_kernels_and_of_waiting_are_that_of_the_op(cell):
    request, explained = cell
    spent = {op.name: op for op in estimate_of(request, references=False).ops}
    for time, found in explained:
        op = spent[found.layer]
        drawn = sum(float(np.ravel(part)[0]) for part in waiting(request).values())
        waited = drawn * max(0.0, time - found.device_s)
        assert sum(kernel.energy_j for kernel in found.kernels) + waited == pytest.approx(op.energy_j, rel=1e-8)
        assert found.energy_j == pytest.approx(op.energy_j, rel=1e-12)
        assert found.energy_breakdown_j == pytest.approx(op.energy_breakdown_j)


def test_what_a_limit_cuts_is_said():
    """A kernel that would draw more than the TDP at the measured clock of its board: the TDP then cuts the energy."""
    request = make_request("vgg_16", "gtx_980", batch=16)
    kernel = max(explain(request, "fc6").kernels, key=lambda kernel: kernel.time_s)
    steps = {step.name: step for step in kernel.energy}
    assert 0 < steps["kept"].value < 1
    assert steps["energy"].right == pytest.approx(steps["energy"].value, rel=1e-9)
    assert kernel.energy_j / kernel.time_s == pytest.approx(165.0)
    free = explain(make_request("vgg_16", "gtx_980", batch=16, settings={"power.tdp": "1000 W"}), "conv3_1")
    assert all("kept" not in {step.name for step in kernel.energy} for kernel in free.kernels)


def shapes(explained: ExplainedRun) -> dict[tuple[object, ...], int]:
    """One variant of each kind that runs: kinds are told apart by the columns that decide which equations hold."""
    kernels, runs = explained.kernels, np.isfinite(np.ravel(explained.cost.busy_s))
    flags = ("matrix", "dense", "overlapped", "row_bytes", "checked", "unrolled", "plain", "parts", "grain", "packed",
             "copied", "threaded", "values")  # fmt: skip
    columns = [np.asarray(getattr(kernels, name)) > 0 for name in flags if hasattr(kernels, name)]
    columns += [np.asarray(getattr(kernels, name)) > 1 for name in ("split", "cluster", "chain") if hasattr(kernels, name)]
    found = {}
    for v in np.flatnonzero(np.broadcast_to(runs, (kernels.m.size,))).tolist():
        family = explained.request.calibration.gather((kernels.constants[kernels.efficiency[v]],))[0] < 1.0
        found[(family, *[bool(column[v]) for column in columns])] = v
    return found


ATTENTION_CELLS = [("h100_sxm5_80gb", {"precision": "bf16", "stack": "pytorch-2"}),
                   ("h100_sxm5_80gb", {"precision": "bf16", "stack": "serving"})]  # fmt: skip
KINDS = [
    ("alexnet", "tesla_v100_sxm2", {"stack": "pytorch-2", "graph": True}),
    ("alexnet", "tegra_x1", {"precision": "fp16"}), ("alexnet", "gtx_1080", {"stack": "ideal"}),
    ("alexnet", "gtx_1080", {"stack": "caffe-native8"}),
    ("alexnet", "xeon_e5_2630_v3_2s", {"batch": 4, "task": "training_step", "stack": "torch7-cpu"}),
    ("alexnet", "xeon_e5_2630_v3_2s", {"stack": "caffe-openblas", "threads": 8}),
    ("alexnet", "xeon_e5_2650_v3_2s", {"batch": 4, "task": "training_step", "stack": "caffe-openblas", "precision": "fp64"}),
    ("resnet_18", "xeon_e5_2666_v3", {"batch": 4, "task": "training_step", "stack": "tensorflow-eigen"}),
    ("resnet_18", "xeon_platinum_8124m", {"stack": "cntk-cpu"}),
    ("resnet_18", "xeon_platinum_8124m", {"stack": "onnxruntime-cpu"}), ("alexnet", "i7_6700k", {"stack": "ideal"}),
    ("alexnet", "i7_6700k", {"batch": 4, "task": "training_step", "stack": "torch7-cpu", "clock": 5e9}),
    ("alexnet", "tegra_x1_cpu", {"stack": "caffe-openblas"}),
]  # fmt: skip


@pytest.mark.parametrize(("net", "hw", "choices"), [*[("attention", *cell) for cell in ATTENTION_CELLS], *KINDS])
def test_equations_hold_for_kernels_of_every_kind(trace, net, hw, choices):
    """Not only for the variants that run: one of each kind. What is shown is worth what the model says, and is named once."""
    request = make_request(trace if net == "attention" else net, hw, **choices)
    explained = ExplainedRun(request=request, result=run(request))
    for kind, v in shapes(explained).items():
        steps, leaves = steps_of(explained, v)
        for name, leaf in energy_steps(explained, v)[1].items():  # a name means the same in the equations of time and of energy
            same = [step.value for step in steps if step.name == name] + [other.value for other in (leaves.get(name),) if other]
            assert all(value == pytest.approx(leaf.value, rel=1e-9) for value in same), name
        assert len({step.name for step in steps}) == len(steps)
        assert not {step.name for step in steps} & set(leaves)
        for step in steps:
            assert step.right == pytest.approx(step.value, rel=1e-9), f"{kind}: {step.name} = {step.text}"
            assert not step.name.endswith("_"), f"two quantities are called {step.name.rstrip('_')}"
            assert step.meaning, f"{step.name} = {step.text}"
            for name, (_, unit) in step.names.items():
                assert unit in UNITS or unit == "1", name
        assert all(leaf.meaning or leaf.kind == CONSTANT for leaf in leaves.values())
        # The root of an equation, and clocks between those of a table.
        tables = ("l2_hit_share", "inputs_resident", "highest", "lowest", "now")
        kinds = {leaf.kind for name, leaf in leaves.items() if name not in tables}
        assert kinds <= {SPEC, CONSTANT, COLUMN, SETTING, FIXED}  # every equation could be read


def test_only_what_applies_on_a_cpu_is_written():
    def written(hw: str, **choices: Any) -> dict[str, set[str]]:
        stories = explain(make_request("alexnet", hw, **choices), "conv2").kernels
        return {kernel.name: {step.name for step in kernel.steps} | {name for step in kernel.steps for name in step.names}
                for kernel in stories}  # fmt: skip

    one, two = (written(hw, stack="caffe-openblas", threads=16) for hw in ("xeon_e5_2630_v3", "xeon_e5_2630_v3_2s"))
    assert {"strip", "again", "FLAGS", "cpu.wake_s", "cpu.pack_clk", "copied"} <= one["gemm"] & two["gemm"]
    assert {"link", "core.link"} <= two["gemm"] - one["gemm"]
    assert {"tests", "loop.steps_clk"} <= two["im2col"] - two["gemm"]
    assert not {"link", "rate", "macs", "flop", "gathers"} & two["im2col"]
    assert not {"strip", "again", "packed", "copied", "packing", "link"} & written("i7_6700k", stack="intel-mkl")["direct"]


def test_one_algorithm_is_chosen_and_none_of_the_others_is_faster(cell):
    for _, found in cell[1]:
        if found.kernels:
            chosen = [row for row in found.algorithms if row.verdict == "chosen"]
            assert len(chosen) == 1
            assert all(row.time_s >= chosen[0].time_s for row in found.algorithms if row.verdict == "slower")


def test_a_wrong_equation_would_be_noticed():
    """The value is the model's, the right-hand side that of the text."""
    step = solve([Equation(name="dram", unit="s", text="moved / bandwidth")], {"moved": (6.0, "B"), "bandwidth": (2.0, "B/s")},
                 {"dram": 4.0})[0]  # fmt: skip
    assert (step.value, step.right) == (4.0, 3.0)


def device_time(request):
    """Time of the kernels of a trace of one op, which takes a tenth of what its explanation takes to make."""
    result = run(request)
    return float(result.cost.time_s[0, int(result.lowered.plan_of[0])])


PINS = {"memory.bandwidth", "memory.achievable"}
FIXED_KEYS = {"chip.node", "clock.simd"}  # energy of another process is not known; the request has its clock, a setting, already


@pytest.mark.parametrize(
    ("hw", "stack", "layer", "some"),
    [
        ("gtx_1080", None, "pool1", PINS),
        ("gtx_1080", None, "fc7", PINS),
        ("i7_6700k", None, "pool1", PINS),
        ("i7_6700k", None, "fc7", PINS),
        ("xeon_e5_2630_v3_2s", "torch7-cpu", "pool1", {"clock.boost"}),
        ("xeon_e5_2630_v3_2s", "torch7-cpu", "conv2", {"core.link", "cpu.pack_clk"}),
        ("xeon_e5_2630_v3_2s", "torch7-mkl", "conv2", {"core.link", "cpu.pack_clk", "cpu.sibling"}),
        ("xeon_e5_2630_v3_2s", "torch7-cpu", "fc7", {"memory.latency", "clock.boost"}),  # one core, which does not reach the pins
        ("xeon_e5_2630_v3_2s", "caffe-openblas", "conv2", {"core.link", "cpu.wake_s", "l3.latency"}),
    ],
)
def test_whatever_moves_the_time_is_listed(hw, stack, layer, some):
    """Every spec value and constant in turn is made larger; where the time moves, the explanation must have named it."""
    request = make_request("alexnet", hw, batch=16, stack=stack)
    request = replace(request, trace=replace(request.trace, ops=tuple(op for op in request.trace.ops if op.name == layer)))
    found = explain(request, layer)
    named = {row.name for row in (*found.spec, *found.constants)}
    before = device_time(request)
    assert before == found.device_s
    moved = set()
    for name, constant in request.calibration.constants.items():
        other = replace(request, calibration=request.calibration.with_values({name: 1.3 * constant.value}))
        moved |= {name} if device_time(other) != before else set()
    for key, entry in request.spec.entries.items():
        if isinstance(entry.value, float) and key not in FIXED_KEYS:
            spec = replace(request.spec, entries={**request.spec.entries, key: replace(entry, value=1.3 * entry.value)})
            moved |= {key} if device_time(replace(request, spec=spec)) != before else set()
    assert moved <= named
    assert some <= moved


def test_why_an_algorithm_did_not_run():
    rows = {row.algorithm: row for row in explain(make_request("alexnet", "gtx_1080", stack="caffe-cudnn4"), "conv2").algorithms}
    assert rows["implicit_gemm"].verdict == "chosen"
    assert rows["fft"].verdict == "workspace"
    assert rows["fft"].workspace > 8 * 2**20
    rows = {row.algorithm: row for row in explain(make_request("alexnet", "gtx_1080"), "conv1").algorithms}
    assert rows["winograd"].reason == "it needs stride 1 and 3 x 3 filters"
    assert rows["fft"].reason == "it needs stride 1"
    rows = {row.algorithm: row for row in explain(make_request("resnet_50", "gtx_1080"), "layer1.0.conv1").algorithms}
    assert rows["fft_tiling"].reason == "it needs filters larger than 1 x 1"


def test_a_gradient_is_found_by_its_layer_and_phase():
    request = make_request("alexnet", "gtx_1080", task="training_step")
    assert explain(request, "conv2").phase == "forward"
    assert explain(request, "conv2", "backward_filter") == explain(request, "conv2.backward_filter")
    assert explain(request, "conv2", "update").kind == "update"


def test_an_op_that_launches_nothing_takes_no_time(trace):
    found = explain(make_request(trace, "gtx_1080"), "flat")
    assert (found.time_s, found.device_s, found.kernels, found.algorithms) == (0.0, 0.0, (), ())


def test_another_fidelity_has_no_equations():
    with pytest.raises(ArgumentError, match="roofline"):
        explain(make_request("alexnet", "gtx_1080", fidelity="roofline"), "conv1")


def test_the_slowest_ops_come_first():
    rows = slowest(make_request("alexnet", "gtx_1080")).ops
    assert len(rows) == 10
    assert [row.time_s for row in rows] == sorted((row.time_s for row in rows), reverse=True)


def test_the_occupancy_names_its_limit():
    found = explain(make_request("alexnet", "gtx_1080", stack="caffe-cudnn4"), "conv2").kernels[0]
    steps = {step.name: step for step in found.steps}
    limits = steps["limits"]
    assert limits.value == min(value for value, _ in limits.names.values())
    assert steps["resident"].value == max(1, int(limits.value))
    assert limits.meaning.endswith(f"here {min(limits.names, key=lambda name: limits.names[name][0])}")


def test_the_tiles_are_the_fastest_and_one_is_chosen():
    found = explain(make_request("vgg_16", "gtx_1080", batch=16), "fc6").kernels[0]
    times = [variant.time_s for variant in found.variants]
    assert times == sorted(times)
    assert [variant.chosen for variant in found.variants] == [True] + [False] * (len(times) - 1)
    assert times[0] == pytest.approx(found.time_s, rel=1e-9)


def test_a_kernel_is_limited_by_whatever_is_longest():
    stories = {kernel.name: kernel for kernel in explain(make_request("lstm_32", "tesla_k80", batch=64), "lstm").kernels}
    assert stories["gemm_input"].bound == "compute"
    assert stories["gates"].bound == "launch"  # eight microseconds between kernels of two


def test_an_algorithm_that_cannot_run_a_transposed_convolution_says_what_it_would_need():
    found = {row.algorithm: row for row in explain(make_request("unet", "gtx_1080"), "up3.larger").algorithms}
    assert found["scatter_gemm"].verdict == "chosen"
    assert found["winograd"].reason == "it needs stride 1 and 3 x 3 filters"


def test_texts_are_read_as_arithmetic():
    assert evaluate("max(ceil(a.b / 2), 1) ** 2 - c", {"a.b": 7.0, "c": 1.0}) == 15.0
    assert names_in("max(ceil(a.b / 2), 1) ** 2 - c") == ["a.b", "c"]
    with pytest.raises(KeyError):
        evaluate("nothing.such", {})


def test_without_the_source_of_the_program_there_is_one_clear_error(monkeypatch):
    def gone(_):
        raise OSError("could not get source code")

    monkeypatch.setattr("archsim.explain.value.inspect.getsource", gone)
    tree_of.cache_clear()
    with pytest.raises(Unsupported, match=r"explain reads equations from the source of the program, and that of archsim\.cost"):
        explain(make_request("alexnet", "gtx_1080"), "conv2")


def halved(t: Any) -> Any:
    """Half of a time [s]."""
    total = 0.0
    for part in (t.dram_bytes,):
        total = total + part
    return total / 2.0


def test_a_function_that_loops_is_one_number_with_a_name():
    request = make_request("alexnet", "gtx_1080")
    terms = Value(value=ExplainedRun(request=request, result=run(request)).cost.terms)
    reader = Reader(model=lambda name: None)
    found = reader.read(halved, terms)
    assert reader.steps == {}
    assert reader.leaves["halved"].kind == COMPUTED
    assert found.text is not None
