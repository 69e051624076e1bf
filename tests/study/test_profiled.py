"""Profiles beside predictions: what is read of real files, and a gap whose causes add up."""

from __future__ import annotations

import json
import math
from pathlib import Path

import archsim
from archsim.trace.profiles.network import network_of
from archsim.trace.profiles.reader import read
from tests.trace.kineto import GAP_US, events

FOLDER = Path(__file__).parents[1] / "trace" / "profiles"
CNN, ATTENTION = FOLDER / "torch_cpu_cnn.json", FOLDER / "torch_cpu_attention.json.gz"


def test_a_recorded_network_has_the_ops_that_ran() -> None:
    profile = read(CNN)
    network = network_of(profile)
    assert len(profile.run_s) == 3
    assert [(op.kind.op, op.shape) for op in network.trace.ops if op.kind.op != "reshape"] == [
        ("conv2d", (4, 16, 32, 32)), ("batch_norm", (4, 16, 32, 32)), ("relu", (4, 16, 32, 32)), ("max_pool", (4, 16, 16, 16)),
        ("conv2d", (4, 32, 8, 8)), ("relu", (4, 32, 8, 8)), ("global_avg_pool", (4, 32, 1, 1)), ("linear", (4, 10)),
    ]  # fmt: skip
    assert network.trace.bind().macs == 4 * (16 * 27 * 32 * 32 + 32 * 16 * 9 * 8 * 8 + 320)
    assert not network.left_out


def test_products_around_a_softmax_are_one_attention_that_was_not_fused() -> None:
    found = archsim.profile(ATTENTION, "i7_6700k", stack="pytorch-cpu")
    kinds = {op.name: (op.kind, op.cause) for op in found.ops}
    assert kinds["attention_7"] == ("attention", "attention not fused")
    assert kinds["scaled_dot_product_attention_15"][1] != "attention not fused"
    assert [op.operators for op in found.ops if op.name == "attention_7"] == [
        ("aten::matmul", "aten::div", "aten::softmax", "aten::matmul")
    ]
    assert {one.name for one in found.not_matched} >= {"aten::view", "aten::reshape"}


def test_nodes_of_onnxruntime_have_the_attributes_that_their_shapes_tell() -> None:
    network = network_of(read(FOLDER / "onnxruntime_cnn.json"))
    first, second = (op.kind for op in network.trace.ops if op.kind.op == "conv2d")
    assert (first.stride, first.pad, second.stride, second.pad) == ((1, 1), (1, 1), (2, 2), (1, 1))  # type: ignore[attr-defined]
    assert network.trace.bind().macs == 4 * (16 * 27 * 32 * 32 + 32 * 16 * 9 * 8 * 8 + 320)
    profile = read(FOLDER / "onnxruntime_attention.json")
    network = network_of(profile)
    assert [op.kind.op for op in network.trace.ops if op.kind.op in ("linear", "attention")] == [
        "linear", "linear", "linear", "attention", "linear"
    ]
    (attention,) = (op for op in network.trace.ops if op.kind.op == "attention")
    assert [profile.calls[place].operator for place in network.calls[attention.name]] == ["FusedMatMul", "Softmax", "MatMul"]


def test_the_causes_add_up_to_the_gap() -> None:
    for path in (CNN, ATTENTION, FOLDER / "onnxruntime_attention.json"):
        found = archsim.profile(path, "i7_6700k", stack="pytorch-cpu")
        assert math.isclose(math.fsum(one.time_s for one in found.gap), found.measured_s - found.predicted_s, rel_tol=1e-9)
        assert math.isclose(found.busy_s + found.idle_s, found.measured_s)
        assert math.isclose(math.fsum(op.predicted_s for op in found.ops), found.predicted_s, rel_tol=1e-9)


# ---------------------------------------------------------------------------------------------------------------- of a GPU


def test_kernels_of_nsight_stand_beside_families_of_ops(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    head = "Start (ns),Duration (ns),CorrId,Bytes (MB),Device,Ctx,Strm,Name"
    run = [(0, 3000, "[CUDA memcpy Host-to-Device]"), (5000, 900_000, "ampere_sgemm_128x64_tn"),
           (910_000, 20_000, "void at::native::vectorized_elementwise_kernel<4, Relu>(int, float)")]  # fmt: skip
    rows = [f'{start + turn * 10**6},{took},1,,GPU,1,7,"{name}"' for turn in range(3) for start, took, name in run]
    path.write_text("\n".join(["Processing [x.sqlite] with [cuda_gpu_trace.py]...", head, *rows]), "utf-8")
    found = archsim.profile(path, "gtx_1080", net="alexnet", batch=4)
    assert len(found.run_s) == 3
    assert math.isclose(found.measured_s, 930e-6)
    families = {op.name: op.measured_s for op in found.ops}
    assert math.isclose(families["products"], 900e-6)
    assert {one.name: one.cause for one in found.not_matched} == {"[CUDA memcpy Host-to-Device]": "copies"}
    assert math.isclose(math.fsum(cause.time_s for cause in found.gap), found.measured_s - found.predicted_s)


def test_what_a_device_waits_copies_and_moves_is_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": list(events(3, layers=2))}), "utf-8")
    found = archsim.profile(path, "a100_sxm4_40gb", stack="pytorch-2")
    assert (found.precision, len(found.run_s), len(found.ops)) == ("fp16", 3, 10)
    assert [op.name for op in found.ops if op.cause == "attention not fused"] == ["attention_1", "attention_9"]
    moved = math.fsum(op.predicted_s for op in found.ops if op.kind == "gather")
    causes = {cause.name: cause.time_s for cause in found.gap}
    assert math.isclose(causes["copies"], 3e-6)
    assert math.isclose(causes["layout and type conversions"], 14e-6 - moved)
    assert math.isclose(causes["host gaps"], found.idle_s - found.wait_s)
    assert found.idle_s > 15 * GAP_US * 1e-6
    assert math.isclose(math.fsum(causes.values()), found.measured_s - found.predicted_s)
