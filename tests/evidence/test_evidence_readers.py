"""Each family of measurement files, row by row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from archsim.calibration.constants import default
from archsim.detect.catalog import find
from archsim.device.device import PRECISION_BYTES, Gpu
from archsim.estimation.measured import request_of
from archsim.estimation.pipeline import lowered_of
from archsim.evidence.case import TIMERS, Case, Skip
from archsim.evidence.family import serving_files, shipped_files
from archsim.evidence.readers import data_hash, family_of, read, read_files
from archsim.evidence.sources import conditions_of
from archsim.evidence.table import read_table
from archsim.lower.columns import Role
from archsim.lower.context import Stored
from archsim.lower.lower import lower
from archsim.stack.compose import folder
from archsim.trace.op import Add, Attention, Conv2d, Gru, LatentAttention, Linear, Lstm, Matmul, MaxPool, Quantise, Rnn
from archsim.validation.predict import predict

from ..data.regenerate import stack_rows
from ..measurements import HEAD, ROW

Write = Callable[..., str]


def rows(write: Write, head: str, *cells: dict[str, str]) -> tuple[list[Case], list[Skip]]:
    names = head.split(",")
    quoted = [",".join('"' + row.get(name, "").replace('"', '""') + '"' for name in names) for row in cells]
    return read(write(*quoted, head=head))


# networks


def network(**cells: str) -> dict[str, str]:
    return dict(zip(HEAD.split(","), ROW.split(","), strict=True)) | cells


def test_a_network_row(write: Write) -> None:
    (case,), skips = rows(write, HEAD, network(clock_mhz="1733", batch="32"))
    assert skips == []
    assert (case.label, case.hardware, case.stack_id, case.precision) == ("alexnet", "gtx_1080", "caffe-cudnn5.1", "fp32")
    assert (case.batch, case.measured, case.clock, case.timer.host, case.line, case.file) == (32, 0.01, 1733e6, True, 2, "mine")
    assert case.ops[0].input_shapes[0][0] == 32


def test_energy_counted_by_rapl_is_compared_where_it_is_that_of_the_packages_of_the_spec(write: Write) -> None:
    mine = network(hardware="i7_6700k", stack="onnxruntime-cpu", metric="power_w", value="60", threads="4")
    covered = ("", "1 package, RAPL", "2 packages, RAPL", "memory modules, RAPL", "board, NVML")
    cases, skips = rows(write, HEAD + ",covers", *(mine | {"covers": covers} for covers in covered))
    assert [case.fields["covers"] for case in cases] == ["", "1 package, RAPL", "board, NVML"]
    assert [skip.reason for skip in skips] == [
        "covers 2 packages, RAPL, but i7_6700k has 1 sockets",
        "covers memory modules, RAPL: only the power of packages is predicted",
    ]
    times, _ = rows(write, HEAD + ",covers", mine | {"metric": "latency_s", "value": "0.1", "covers": "2 packages, RAPL"})
    assert len(times) == 1


def test_the_stack_that_ran_stands_in_its_row(write: Write) -> None:
    said, ran = (network(stack="neon-maxas", ran=stack) for stack in ("", "neon-maxas-direct"))
    cases, _ = rows(write, HEAD + ",ran", said, ran)
    assert [case.stack_id for case in cases] == ["neon-maxas", "neon-maxas-direct"]
    assert [case.fields["stack"] for case in cases] == ["neon-maxas", "neon-maxas"]


def test_a_case_is_timed_as_its_source_says(write: Write) -> None:
    """Caffe's timer in convnet-benchmarks waits for each layer, neon's gradients come with the updates."""
    words = {"source": "convnet_benchmarks", "hardware": "titan_x_maxwell", "network": "googlenet", "task": "backward"}
    cases, _ = rows(write, HEAD, *[network(**words, stack=stack) for stack in ("caffe-native", "torch7-cudnn3", "neon-maxas")])
    assert [case.stack.waits for case in cases] == [True, False, False]
    assert [case.task for case in cases] == ["backward", "backward", "backward_update"]
    assert [any(op.phase == "update" for op in case.ops) for case in cases] == [False, False, True]
    assert not any(op.kind.op == "lrn" for case in cases for op in case.ops)  # the graph without normalisation


def test_a_source_can_say_at_which_clock_a_card_ran(write: Write) -> None:
    words = {"source": "shi2016_t7", "task": "training_step", "stack": "tensorflow-cudnn5.1"}
    said, written, other = [network(**words, **more) for more in
                            ({"hardware": "tesla_k80"}, {"hardware": "tesla_k80", "clock_mhz": "875"}, {})]  # fmt: skip
    cases, _ = rows(write, HEAD, said, written, other)
    assert [case.clock for case in cases] == [562e6, 875e6, None]


def test_sequences_have_the_length_that_a_row_gives(write: Write) -> None:
    words = {"network": "bert_base", "hardware": "tesla_t4", "stack": "pytorch-2"}
    cells = [network(**words) | {"seq_len": "384"}, network(**words), network() | {"seq_len": "384"},
             network(**words) | {"out_len": "16"}]  # fmt: skip
    cases, skips = rows(write, HEAD + ",seq_len,out_len", *cells)
    assert [case.ops[0].input_shapes[0] for case in cases] == [(16, 384), (16, 128)]
    assert ["takes no sequences" in skips[0].reason, "one by one" in skips[1].reason] == [True, True]


def test_equal_cells_share_their_ops(write: Write) -> None:
    cases, _ = rows(write, HEAD, network(), network(hardware="tesla_k80"), network(batch="17"))
    assert cases[0].ops is cases[1].ops
    assert cases[0].ops is not cases[2].ops


def test_aliases_become_the_identifier(write: Write) -> None:
    (case,), _ = rows(write, HEAD, network(hardware="GTX-1080"))
    assert case.hardware == "gtx_1080"


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"hardware": "gtx_9999"}, "hardware 'gtx_9999' is not described"),
        ({"network": "nonet"}, "network 'nonet' is not described"),
        ({"network": "nonet", "task": "training_step"}, "network 'nonet' is not described"),
        ({"unpredicted": "its BLAS is not stated"}, "its BLAS is not stated"),
        ({"stack": "nostack"}, "stack 'nostack' is not described"),
        ({"stack": "caffe-openblas"}, "stack caffe-openblas is for a cpu, not a gpu"),
        ({"precision": "fp12"}, "precision 'fp12' is not modelled"),
        ({"precision": "fp8"}, "gtx_1080 has no unit for fp8"),
        ({"task": "training"}, "task 'training' is not one of"),
        ({"metric": "memory"}, "metric 'memory' is not one of"),
        ({"devices": "4"}, "4 devices: no node is named for source 'me'"),
        ({"devices": "4", "source": "guolinke_k40m"}, "4 devices: only the time of training steps is modelled"),
        ({"devices": "8", "source": "guolinke_k40m", "task": "training_step"}, "node xeon_e5_2680_v2_4gpu holds 4"),
        ({"devices": "3", "source": "guolinke_k40m", "task": "training_step"}, "3 devices cannot share 16 samples evenly"),
    ],
)
def test_a_row_that_cannot_be_predicted_is_skipped_with_its_reason(cells: dict[str, str], reason: str, write: Write) -> None:
    cases, (skip,) = rows(write, f"{HEAD},unpredicted", network(**cells))
    assert cases == []
    assert reason in skip.reason
    assert (skip.line, skip.file, skip.fields["source"]) == (2, "mine", cells.get("source", "me"))


def test_threads(write: Write) -> None:
    head = HEAD + ",source_ref"
    cpu = {"hardware": "xeon_platinum_8124m", "stack": "mxnet-mkldnn"}
    words = "vCPUs/2 recommended by page"
    cases, _ = rows(
        write, head, network(threads="4", **cpu), network(threads=words, source_ref="EC2 C5.9xlarge (36 vCPU)", **cpu),
        network(threads=words, **cpu), network(threads="", **cpu), network(threads="4"),
    )  # fmt: skip
    assert [case.threads for case in cases] == [4, 18, None, None, None]
    cases, left = rows(write, HEAD, network(threads="9" * 400, **cpu), network(threads="65537", **cpu))
    assert (cases, [skip.reason for skip in left]) == ([], ["more than 65536 threads"] * 2)


# kernels

def in_graph(case: Case) -> int:
    """Calls in a graph that is replayed again and again; 0: in none."""
    return case.calls if case.timer is TIMERS["graphs"] else 0


KERNELS = (
    "source_id,op,sub_op,m,n,k,batch,heads,kv_heads,head_dim,seq_q,seq_kv,dtype,software,latency_us,notes,hardware,kernel,split"
)


def kernel(**cells: str) -> dict[str, str]:
    basis = {"source_id": "s", "dtype": "fp32", "software": "pytorch-2.1.0/cu121", "latency_us": "20", "split": "calibrate"}
    return basis | {"hardware": "a100_pcie_40gb", "kernel": "{}"} | cells


def test_products(write: Write) -> None:
    cases, skips = rows(
        write, KERNELS, kernel(op="gemm", sub_op="linear_bias", m="4", n="327", k="7475", batch="1"),
        kernel(op="gemm", m="8", n="16", k="32", dtype="bf16", software="trtllm-1.0.0"),
        kernel(op="bmm", m="17", n="13", k="119", batch="50"),
    )  # fmt: skip
    assert skips == []
    linear, plain, batched = (case.ops[0] for case in cases)
    assert linear.kind == Linear(bias=True)
    assert (linear.input_shapes, linear.shape) == (((4, 7475),), (4, 327))
    assert plain.kind == Linear(bias=False)
    assert isinstance(batched.kind, Matmul)
    assert batched.macs == 50 * 17 * 13 * 119
    assert [case.timer.host for case in cases] == [True, False, True]  # only eager PyTorch launches from the host
    assert [case.stack_id for case in cases] == ["pytorch-2", "tensorrt-llm", "pytorch-2"]
    assert cases[0].measured == pytest.approx(20e-6)
    assert cases[1].precision == "bf16"


def test_convolution_of_kernel_files(write: Write) -> None:
    geometry = '{"cin":806,"cout":219,"kh":3,"kw":3,"hin":5,"win":5,"stride":1,"pad":1}'
    (case,), _ = rows(write, KERNELS, kernel(op="conv", m="25", n="219", k="7254", batch="1", kernel=geometry))
    assert isinstance(case.ops[0].kind, Conv2d)
    assert case.ops[0].macs == 25 * 219 * 7254


def test_streams(write: Write) -> None:
    cases, skips = rows(
        write, KERNELS, kernel(op="elementwise", sub_op="add", m="4", n="9"),
        kernel(op="elementwise", sub_op="addu", m="4", n="9"),
        kernel(op="softmax", sub_op="softmax", m="4", n="9"), kernel(op="layernorm", sub_op="ln", m="4", n="9"),
        kernel(op="elementwise", sub_op="quantize_scale_matrix", m="4", k="9"),
        kernel(op="elementwise", sub_op="quantize_compute_scale", m="4", k="9", software="trtllm-1.3.0rc10"),
        kernel(op="elementwise", sub_op="quantize_compute_scale", m="4", k="9"),
        kernel(op="elementwise", sub_op="sort", m="4", k="9"),
    )  # fmt: skip
    assert [case.ops[0].kind.op for case in cases] == ["add", "relu", "softmax", "layer_norm", "quantise", "quantise"]
    assert [case.ops[0].kind for case in cases[4:]] == [Quantise(), Quantise(dynamic=True)]
    assert {case.ops[0].shape for case in cases[4:]} == {(4, 9)}
    assert isinstance(cases[0].ops[0].kind, Add)
    assert len(cases[0].ops[0].input_shapes) == 2
    assert ["than its values take" in skip.reason for skip in skips] == [True, False]
    assert "'sort' is not modelled" in skips[1].reason


def test_attention(write: Write) -> None:
    sizes = {"op": "attention", "batch": "4", "heads": "32", "kv_heads": "8", "head_dim": "128", "dtype": "bf16"}
    cases, skips = rows(
        write, KERNELS, kernel(sub_op="decode", seq_q="1", seq_kv="4096", **sizes),
        kernel(sub_op="prefill_causal", seq_q="512", seq_kv="512", **sizes),
        kernel(sub_op="encoder_full", seq_q="512", seq_kv="512", **sizes),
        kernel(sub_op="decode", seq_q="1", seq_kv="4096", **sizes | {"kernel": '{"window":128}'}),
        kernel(sub_op="prefill_causal", seq_q="512", seq_kv="512", **sizes | {"kernel": '{"window":128}'}),
        kernel(sub_op="encoder_full", seq_q="512", seq_kv="512", **sizes | {"kernel": '{"window":128}'}),
        kernel(sub_op="ring", seq_q="1", seq_kv="512", **sizes),
        kernel(sub_op="decode", seq_q="1", seq_kv="512", **sizes | {"kv_heads": "7"}),
    )  # fmt: skip
    decode, prefill, full, window, sliding = (case.ops[0] for case in cases)
    assert decode.kind == Attention(heads=32, kv_heads=8, causal=False)
    assert decode.input_shapes == ((4, 1, 4096), (4, 4096, 1024), (4, 4096, 1024))
    assert prefill.macs < 0.51 * full.macs
    assert window.input_shapes[1][1] == 128
    assert sliding.macs == 2 * 4 * 32 * 128 * sum(min(t, 128) for t in range(1, 513))
    assert [skip.line for skip in skips] == [7, 8, 9]


def test_latent_attention_has_the_sizes_of_deepseek(write: Write) -> None:
    sizes = {"op": "attention", "batch": "4", "heads": "16", "dtype": "bf16", "software": "sglang-0.5.10"}
    cases, skips = rows(
        write, KERNELS, kernel(sub_op="mla_decode", seq_q="1", seq_kv="512", **sizes),
        kernel(sub_op="mla_prefill", seq_kv="512", **sizes | {"kernel": '{"kernel":"flash_attention"}'}),
        kernel(sub_op="mla_prefill", seq_kv="512", **sizes | {"software": "trtllm-1.0.0"}),
        kernel(sub_op="mla_decode", seq_q="1", seq_kv="512", **sizes | {"software": "vllm-0.14.0"}),
    )  # fmt: skip
    decode, absorbed, expanded = (case.ops[0] for case in cases)
    assert decode.kind == absorbed.kind == LatentAttention(heads=16, rank=512)
    assert decode.input_shapes == ((4, 1, 16 * 576), (4, 512, 576))
    assert absorbed.input_shapes == ((4, 512, 16 * 576), (4, 512, 576))
    assert expanded.kind == Attention(heads=16, causal=True)
    assert expanded.input_shapes == ((4, 512, 16 * 192),) * 3
    assert ["a module of Python" in skip.reason for skip in skips] == [True]


@pytest.mark.parametrize("text", ["[1]", "{", "3", '{"cin": "x"}', "{}", '{"cin":1e99}', "[" * 5000])
def test_kernel_parameters_that_mean_nothing(text: str, write: Write) -> None:
    cases, skips = rows(write, KERNELS, kernel(op="conv", m="1", n="1", k="1", kernel=text))
    assert (len(cases), len(skips)) == (0, 1)


def test_a_row_marked_as_doubtful_is_not_scored(write: Write) -> None:
    _, (skip,) = rows(write, KERNELS, kernel(op="gemm", m="1", n="1", k="1", notes="SUSPECT: above peak"))
    assert "peak" in skip.reason


def test_time_and_power_of_one_kernel(write: Write) -> None:
    head = KERNELS.replace(",kernel,", ",params,power_w,energy_uj,")
    row = kernel(op="gemm", m="8", n="16", k="32", dtype="fp8_block", software="vllm-0.22.0", hardware="h200_sxm_141gb",
                 power_w="527.4", energy_uj="18995")  # fmt: skip
    cases, _ = rows(write, head, row)
    assert [case.metric for case in cases] == ["latency_s", "power_w"]
    assert [case.measured for case in cases] == pytest.approx([2e-5, 527.4])
    assert cases[0].precision == "fp8"


@pytest.mark.parametrize(("software", "dtype", "launched"), [
    ("vllm-0.22.0", "fp8_block", 1.0), ("vllm-0.24.0", "fp8_block", 1.0), ("vllm-0.24.0", "fp8", 0.0),
    ("sglang-0.5.14", "fp8_block", 0.0),
])  # fmt: skip
def test_a_version_of_its_own_does_not_make_a_launch_a_replay(write: Write, software: str, dtype: str, launched: float) -> None:
    """The collector of vLLM times its products of fp8 in blocks without a graph, whatever the version."""
    row = kernel(op="gemm", m="8", n="16", k="32", dtype=dtype, software=software, hardware="h200_sxm_141gb")
    cases, _ = rows(write, KERNELS, row | {"source_id": "aiconfigurator"})
    assert [case.timer.host for case in cases] == [launched]
    assert [case.timer is TIMERS["host_async"] for case in cases] == [launched == 1.0]


@pytest.mark.parametrize(("software", "op", "dtype", "calls"), [
    ("vllm-0.24.0", "gemm", "bf16", 6), ("vllm-0.24.0", "gemm", "fp8_block", 0), ("trtllm-1.0.0", "gemm", "bf16", 5),
    ("sglang-0.5.14", "gemm", "fp8", 6), ("trtllm-1.0.0", "bmm", "bf16", 1),
])  # fmt: skip
def test_a_kernel_is_timed_in_the_graph_of_its_script(write: Write, software: str, op: str, dtype: str, calls: int) -> None:
    row = kernel(op=op, m="8", n="16", k="32", batch="4", dtype=dtype, software=software, hardware="h200_sxm_141gb")
    (case,), _ = rows(write, KERNELS, row | {"source_id": "aiconfigurator"})
    assert in_graph(case) == calls


@pytest.mark.parametrize(("dtype", "precision", "stored", "rounds"), [
    ("int8_wo", "fp16", Stored(weight_bytes=1.0), False), ("int4_wo", "fp16", Stored(weight_bytes=0.5), False),
    ("sq", "int8", Stored(), False), ("fp8_static", "fp8", Stored(), True), ("bf16", "bf16", Stored(), False),
])  # fmt: skip
def test_weights_in_fewer_bytes_than_are_multiplied(
    write: Write, dtype: str, precision: str, stored: Stored, rounds: bool
) -> None:  # fmt: skip
    """A plug-in takes activations as they are, or rounded by a layer before it; no constant is fitted to such formats."""
    row = kernel(op="gemm", m="8", n="1024", k="4096", dtype=dtype, software="trtllm-1.0.0", hardware="l40s", split="calibrate")
    (case,), _ = rows(write, KERNELS, row | {"source_id": "aiconfigurator"})
    assert (case.precision, case.stored, case.split) == (precision, stored, "calibrate" if dtype == "bf16" else "watched")
    (option,) = lowered_of(request_of(case, default())).kernels.options
    assert any(one.role == Role.QUANTISE for one in option.kernels) == rounds
    (product,) = (one for one in option.kernels if one.role != Role.QUANTISE)
    assert product.a_bytes == 1024 * 4096 * (stored.weight_bytes or PRECISION_BYTES[precision])


def test_keys_and_values_of_one_byte_under_queries_of_two(write: Write) -> None:
    row = kernel(op="attention", sub_op="decode", batch="4", heads="32", kv_heads="8", head_dim="128", seq_q="1", seq_kv="2048",
                 dtype="bf16/kv_fp8", software="vllm-0.24.0", hardware="l40s")  # fmt: skip
    row |= {"source_id": "aiconfigurator"}
    narrow, wide = (rows(write, KERNELS, row | {"dtype": dtype})[0][0] for dtype in ("bf16/kv_fp8", "bf16"))
    assert (narrow.precision, narrow.stored) == ("bf16", Stored(cache_bytes=1.0))
    small, large = predict([narrow, wide], default())
    assert 0.4 * large < small < 1.1 * large


def test_a_call_that_ran_once_found_nothing_in_a_cache_and_was_slowed_by_no_limit(write: Write) -> None:
    row = kernel(op="gemm", m="8", n="1024", k="4096", software="trtllm-1.0.0", hardware="l40s") | {"source_id": "aiconfigurator"}
    once, again = (rows(write, KERNELS, row | {"dtype": dtype})[0][0] for dtype in ("int8_wo", "fp8"))
    device = once.spec.device
    assert isinstance(device, Gpu)
    assert (once.clock, in_graph(once), once.limit) == (float(device.clock.boost), 0, None)
    assert (again.clock, in_graph(again)) == (None, 5)
    read_s = 1024 * 4096 / float(device.memory.bandwidth)
    assert predict([once], default())[0] > read_s


# DeepBench

DEEPBENCH = (
    "source_id,op,precision,M,N,K,A_trans,B_trans,W,H,C,batch,filters,R,S,pad_h,pad_w,stride_h,stride_w,cell,hidden,rnn_batch,timesteps,"
    "direction,time_ms,suspicious,hardware,split"
)


def bench(**cells: str) -> dict[str, str]:
    basis = {"source_id": "deepbench", "precision": "fp32", "direction": "forward", "time_ms": "0.5", "split": "calibrate"}
    return basis | {"hardware": "titan_x_maxwell"} | cells


def test_deepbench_product(write: Write) -> None:
    (case,), _ = rows(write, DEEPBENCH, bench(op="gemm", M="1760", N="16", K="1024"))
    assert (case.ops[0].input_shapes, case.ops[0].shape) == (((16, 1024),), (16, 1760))
    assert (case.measured, case.timer.host, case.task) == (0.5e-3, False, "inference")


@pytest.mark.parametrize(("a", "b", "phase"), [("T", "N", "forward"), ("N", "N", "backward_data"), ("N", "T", "backward_filter")])
def test_a_deepbench_product_is_the_phase_that_transposes_the_same_operands(write: Write, a: str, b: str, phase: str) -> None:
    (case,), _ = rows(write, DEEPBENCH, bench(op="gemm", M="1760", N="16", K="1024", A_trans=a, B_trans=b))
    (option,) = lower(case.ops, case.stack, "gpu", "fp32", False).kernels.options
    assert case.ops[0].phase == phase
    assert [(kernel.m, kernel.n, kernel.k) for kernel in option.kernels] == [(1760, 16, 1024)]


def test_deepbench_convolution_and_its_gradients(write: Write) -> None:
    sizes = {"op": "conv", "W": "700", "H": "161", "C": "1", "batch": "4", "filters": "32", "R": "5", "S": "20"}
    sizes |= {"pad_h": "0", "pad_w": "0", "stride_h": "2", "stride_w": "2"}
    directions = ("forward", "backward_data", "backward_filter")
    cases, _ = rows(write, DEEPBENCH, *(bench(direction=direction, **sizes) for direction in directions))
    assert [case.ops[0].phase for case in cases] == list(directions)
    assert {case.ops[0].shape for case in cases} == {(4, 32, 79, 341)}  # as the sheets print it
    assert [case.training for case in cases] == [False, True, True]


def test_deepbench_recurrent_layers(write: Write) -> None:
    sizes = {"op": "rnn", "hidden": "512", "rnn_batch": "16", "timesteps": "25"}
    cases, skips = rows(
        write, DEEPBENCH, bench(cell="LSTM", **sizes), bench(cell="GRU", **sizes), bench(cell="Vanilla", **sizes),
        bench(cell="MGU", **sizes), bench(op="allreduce", direction=""), bench(cell="LSTM", **sizes | {"direction": "backward"}),
    )  # fmt: skip
    assert [type(case.ops[0].kind) for case in cases] == [Lstm, Gru, Rnn]
    # four gates, three or one; the input is added, not multiplied
    assert [case.ops[0].macs for case in cases] == [25 * 16 * gates * 512 * 512 for gates in (4, 3, 1)]
    assert {case.stack.recurrent for case in cases} == {"fused"}  # one library call, whatever the framework around it does
    reasons = [skip.reason for skip in skips]
    assert reasons[:2] == ["cell 'MGU' is not modelled", "`archsim simulate allreduce` compares these"]
    assert "which gradients" in reasons[2]


def test_a_card_that_no_source_names_is_predicted_with_its_usual_library(write: Write) -> None:
    """Neither DeepBench's sheets nor any rule has it; the library follows from its architecture, or is the device's own."""
    size = {"op": "gemm", "M": "512", "N": "512", "K": "512"}
    cards = {"titan_xp": "torch7-cudnn5.1", "tesla_v100_sxm2": find("tesla_v100_sxm2").identity.default_stack,
             "rtx_2080_ti": "pytorch-cudnn7.6", "tesla_k40": find("tesla_k40").identity.default_stack}  # fmt: skip
    cases, skips = rows(write, DEEPBENCH, *(bench(**size, hardware=name, source_id="deepbench") for name in cards))
    assert (skips, {case.hardware: case.stack_id for case in cases}) == ([], cards)
    assert all(0 < value < 1 for value in predict(cases, default()))


def test_a_rows_own_stack_wins_over_every_rule(write: Write) -> None:
    size = {"op": "gemm", "M": "512", "N": "512", "K": "512", "hardware": "titan_x_maxwell"}
    (ruled,), _ = rows(write, DEEPBENCH, bench(**size))
    (own,), _ = rows(write, DEEPBENCH + ",stack", bench(**size) | {"stack": "torch7-cudnn3"})
    assert (ruled.stack_id, own.stack_id) == ("torch7-cudnn4", "torch7-cudnn3")
    vllm = kernel(op="gemm", m="8", n="16", k="32", dtype="bf16", software="vllm-0.24.0", hardware="l4")
    cases, _ = rows(write, KERNELS + ",stack", vllm, vllm | {"stack": "pytorch-2"})
    assert [case.stack_id for case in cases] == ["vllm-0.24", "pytorch-2"]


def test_kernels_of_a_card_and_a_library_that_no_source_names_are_predicted(write: Write) -> None:
    product = {"op": "gemm", "m": "512", "n": "512", "k": "512", "hardware": "rtx_2080_ti"}
    cases, skips = rows(write, KERNELS, *(kernel(**product, software=name) for name in ("mine-1.0", "pytorch-2.6.0/cu124")))
    assert (skips, [case.stack_id for case in cases]) == ([], [find("rtx_2080_ti").identity.default_stack, "pytorch-2"])
    assert all(0 < value < 1 for value in predict(cases, default()))


def test_half_storage_is_single_arithmetic(write: Write) -> None:
    row = {"op": "gemm", "M": "64", "N": "64", "K": "64", "hardware": "tesla_p100_pcie_16gb"}
    cases, _ = rows(write, DEEPBENCH, bench(**row), bench(**row | {"precision": "fp16 storage (pseudo fp16)"}))
    single, half = cases
    assert isinstance(half.spec.device, Gpu)
    assert half.precision == "fp16"
    assert half.spec.device.pipe("fp16") == single.spec.device.pipe("fp32")
    assert single.spec.device.pipe("fp16") == 2 * single.spec.device.pipe("fp32")
    assert half.hardware == single.hardware


def test_convolutions_of_halves_are_multiplied_as_halves(write: Write) -> None:
    sizes = {"op": "conv", "W": "56", "H": "56", "C": "64", "batch": "8", "filters": "64", "R": "3", "S": "3"}
    sizes |= {"pad_h": "1", "pad_w": "1", "stride_h": "1", "stride_w": "1", "hardware": "tesla_p100_pcie_16gb"}
    (half,), _ = rows(write, DEEPBENCH, bench(**sizes | {"precision": "fp16 storage (pseudo fp16)"}))
    assert isinstance(half.spec.device, Gpu)
    assert half.spec.device.pipe("fp16") == 2 * half.spec.device.pipe("fp32")
    assert half.stack.conv.layout_copies == "none"  # a library called directly gets its own layout


def test_misprinted_rows_are_not_scored(write: Write) -> None:
    _, (skip,) = rows(write, DEEPBENCH, bench(op="gemm", M="1", N="1", K="1", suspicious="Y"))
    assert "misprinted" in skip.reason


# layers

LAYERS = (
    "source_id,network,layer,layer_type,framework,library,precision,N,C,H,W,K,R,S,stride_h,stride_w,pad_h,pad_w,groups,"
    "out_h,out_w,fwd_ms,bwd_data_ms,bwd_filter_ms,bwd_total_ms,hardware,split"
)


def layer(**cells: str) -> dict[str, str]:
    basis = {"source_id": "s", "layer_type": "CONVOLUTION", "framework": "Caffe", "library": "cudnn5.1", "precision": "fp32"}
    sizes = {"N": "10", "C": "96", "H": "27", "W": "27", "K": "256", "R": "5", "S": "5", "stride_h": "1", "stride_w": "1"}
    rest = {"pad_h": "2", "pad_w": "2", "groups": "2", "out_h": "27", "out_w": "27", "fwd_ms": "1.5", "hardware": "gtx_1080"}
    return basis | sizes | rest | cells


def test_a_layer_with_each_pass(write: Write) -> None:
    apart = {"bwd_data_ms": "2", "bwd_filter_ms": "3", "bwd_total_ms": "5"}
    cases, _ = rows(write, LAYERS, layer(), layer(**apart), layer(bwd_total_ms="5"))
    assert [[op.phase for op in case.ops] for case in cases] == [
        ["forward"], ["forward"], ["backward_data"], ["backward_filter"], ["forward"], ["backward_data", "backward_filter"],
    ]  # fmt: skip
    assert [case.measured for case in cases] == pytest.approx([1.5e-3, 1.5e-3, 2e-3, 3e-3, 1.5e-3, 5e-3])
    assert cases[0].ops[0].macs == 10 * 256 * 27 * 27 * 48 * 25


@pytest.mark.parametrize(
    ("library", "stack"),
    [("cudnn5.1", "caffe-cudnn5.1"), ("cublas8", "caffe-native8"), ("cuda native (im2col+cuBLAS)", "caffe-native")],
)
def test_the_library_decides_the_stack(library: str, stack: str, write: Write) -> None:
    (case,), _ = rows(write, LAYERS, layer(library=library))
    assert case.stack_id == stack


def test_layers_other_than_convolutions(write: Write) -> None:
    pool = {"layer_type": "POOLING", "R": "3", "S": "3", "stride_h": "2", "stride_w": "2", "pad_h": "0", "pad_w": "0"}
    even = pool | {"H": "28", "W": "28", "out_h": "14", "out_w": "14"}
    plane = pool | {"R": "27", "S": "27", "out_h": "1", "out_w": "1"}
    cases, skips = rows(
        write, LAYERS, layer(**pool | {"out_h": "13", "out_w": "13"}), layer(**even), layer(**plane),
        layer(layer_type="INNERPRODUCT", C="9216", H="1", W="1", K="4096"), layer(layer_type="CONCAT"),
        layer(layer_type="SOFTMAX", C="1000", H="1", W="1"), layer(layer_type="LRN"), layer(layer_type="RELU"),
        layer(layer_type="DROPOUT"), layer(layer_type=""), layer(library="libdnn+cublas"), layer(fwd_ms="0.000"),
    )  # fmt: skip
    kinds = [case.ops[0].kind for case in cases]
    names = ["max_pool", "max_pool", "global_avg_pool", "linear", "concat", "softmax", "lrn", "relu", "dropout"]
    assert [kind.op for kind in kinds] == names
    assert isinstance(kinds[0], MaxPool)
    assert [getattr(kind, "ceil_mode", None) for kind in kinds[:2]] == [False, True]
    assert len(skips) == 3
    assert {case.ops[0].kind.op for case in cases if case.training} == {"dropout"}  # `caffe time` runs the net of training
    assert cases[-1].ops[0].flop > 0


def test_a_convolution_that_does_not_fit_is_skipped(write: Write) -> None:
    _, (skip,) = rows(write, LAYERS, layer(groups="5"))
    assert "groups" in skip.reason


# epochs under power limits, and clocks

CAPS = "source_id,model,task,phase,batch,precision,n_devices,software,metric,value,params,hardware,split"


def epoch(limit: float, metric: str, value: float, **more: str) -> dict[str, str]:
    """One value of an epoch of ResNet-50 under a limit [W]."""
    return {
        "source_id": "zeus_nsdi23", "model": "resnet50/imagenet", "task": "training", "phase": "epoch", "batch": "64",
        "precision": "fp32(default)", "n_devices": "1", "software": "PyTorch", "metric": metric, "value": str(value),
        "params": f'{{"power_limit_w":{limit:g},"optimizer":"adadelta"}}', "hardware": "tesla_v100_pcie_32gb",
        "split": "calibrate", **more,
    }  # fmt: skip


def curve(*points: tuple[float, float, float]) -> list[dict[str, str]]:
    """The rows of limits [W], mean powers [W] and energies [J]."""
    return [epoch(limit, metric, value) for limit, power, energy in points
            for metric, value in (("power_w", power), ("energy_j", energy))]  # fmt: skip


def test_an_epoch_under_a_limit_is_compared_with_the_one_under_the_highest(write: Write) -> None:
    cases, (skip,) = rows(write, CAPS, *curve((250, 200, 8e5), (150, 140, 7e5)))
    assert "compared" in skip.reason
    assert [case.metric for case in cases] == ["power_w", "power_w", "energy_j", "latency_s"]
    assert [case.limit for case in cases] == [250, 150, 150, 150]
    energy, time = cases[2:]
    assert (energy.anchor and energy.anchor.measured, time.anchor and time.anchor.measured) == (8e5, 4e3)
    assert (energy.measured, time.measured) == (7e5, 5e3)
    assert (time.task, time.batch, time.label) == ("training_step", 64, "resnet_50")
    power, _, _, slower = predict(cases, default())
    assert power <= 250
    assert slower > 4e3


def test_a_limit_that_binds_nothing_changes_nothing(write: Write) -> None:
    cases, _ = rows(write, CAPS, *curve((2500, 200, 8e5), (2400, 200, 8e5)))
    assert predict(cases[2:], default()) == pytest.approx([8e5, 4e3])


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"model": "ncf/movielens-1m"}, "not described"), ({"n_devices": "4"}, "several devices"),
     ({"params": "{}"}, "no power limit"), ({"metric": "latency_s"}, "metric")],
)  # fmt: skip
def test_epochs_that_cannot_be_predicted_are_skipped(write: Write, change: dict[str, str], reason: str) -> None:
    cases, (skip,) = rows(write, CAPS, epoch(150, "power_w", 140) | change)
    assert cases == []
    assert reason in skip.reason


POWERS = KERNELS.replace(",kernel,", ",params,power_w,energy_uj,")


def metered(dtype: str, latency_us: str) -> dict[str, str]:
    """A product of vLLM with its power."""
    cells = kernel(op="gemm", m="1024", n="1024", k="1024", dtype=dtype, software="vllm-0.22.0", hardware="h200_sxm_141gb",
                   latency_us=latency_us, power_w="300", energy_uj="1")  # fmt: skip
    return cells | {"source_id": "aiconfigurator", "split": "calibrate"}


@pytest.mark.parametrize(("dtype", "latency_us", "split"), [
    ("fp8_block", "60", "watched"),  # the meter hardly sees it
    ("fp8_block", "120", "calibrate"),
    ("bf16", "1000", "watched"),  # nothing wrote its operands
])  # fmt: skip
def test_a_power_that_says_little_is_scored_and_not_fitted(write: Write, dtype: str, latency_us: str, split: str) -> None:
    cases, skips = rows(write, POWERS, metered(dtype, latency_us))
    assert not skips
    assert [(case.metric, case.split) for case in cases] == [("latency_s", "calibrate"), ("power_w", split)]


def test_a_power_that_was_read_before_the_kernel_is_skipped_and_its_time_is_not(write: Write) -> None:
    """3000 rounds of six calls, or of one, against a meter that is read every 0.1 s."""
    cases, skips = rows(write, POWERS, metered("bf16", "5.5"), metered("bf16", "5.6"), metered("fp8_block", "33"))
    assert [case.metric for case in cases] == ["latency_s", "latency_s", "power_w", "latency_s"]
    assert [skip.line for skip in skips] == [2, 4]
    assert all("the power is that before the kernel" in skip.reason for skip in skips)


def test_a_kernel_that_the_host_launched_takes_as_long_as_the_host(write: Write) -> None:
    (replayed, *_), _ = rows(write, POWERS, metered("bf16", "60"))
    (launched, *_), _ = rows(write, POWERS, metered("fp8_block", "60"))
    assert (replayed.timer.host, launched.timer.host) == (0.0, 1.0)
    pytorch = kernel(op="gemm", m="8", n="8", k="8", software="pytorch-2.1.0", hardware="tesla_t4", latency_us="60")
    (eager,), _ = rows(write, KERNELS, pytorch | {"source_id": "neusight"})
    assert eager.timer.host == 1.0


def test_a_source_names_the_cpu_that_dispatched(write: Write) -> None:
    words = {"op": "gemm", "m": "8", "n": "8", "k": "8", "software": "pytorch-2.1.0", "hardware": "gtx_1080", "latency_us": "60"}
    named, unknown = (kernel(**words) | {"source_id": source} for source in ("ck_gtx1080", "somebody"))
    (one, other), _ = rows(write, KERNELS, named, unknown)
    assert one.host_cpu is not None
    assert (one.host_cpu.identity.id, other.host_cpu) == ("xeon_e5_2650_v3", None)
    assert (one.timer.host, other.timer.host) == (1.0, 1.0)
    (replayed,), _ = rows(write, KERNELS, named | {"software": "trtllm-1.0.0"})
    assert replayed.timer.host == 0.0


def test_rows_that_their_source_contradicts_are_scored_and_never_fitted(write: Write) -> None:
    cells = network(source="mxnet_perf_2018", split="calibrate", hardware="xeon_platinum_8124m", stack="mxnet-mkldnn")
    places = [{"source_ref": f"docs/faq/perf.md scoring table AWS EC2 C5.{size} vCPU)"} for size in ("2xlarge (8", "xlarge (4")]
    (other, odd), _ = rows(write, HEAD + ",source_ref", *(cells | place for place in places))
    assert ((other.split, other.fitted), (odd.split, odd.fitted)) == (("calibrate", True), ("doubted", False))


CLOCKS = "source_id,op,sub_op,m,n,k,dtype,software,clock_mhz,hardware,split,source_ref"


def test_a_clock_is_that_of_the_power_model(write: Write) -> None:
    row = {"source_id": "me", "op": "gemm", "m": "4096", "n": "4096", "k": "4096", "dtype": "fp32", "software": "pytorch-2",
           "clock_mhz": "1000", "hardware": "tesla_t4", "split": "test"}  # fmt: skip
    (case,), skips = rows(write, CLOCKS, row)
    assert skips == []
    assert (case.metric, case.measured, case.limit) == ("clock_hz", 1e9, 70.0)
    assert 585e6 < predict([case], default())[0] < 1590e6


# all of them


@pytest.mark.slow
def test_the_whole_corpus_reads_and_nothing_is_lost(corpus: tuple[list[Case], list[Skip]]) -> None:
    cases, skips = corpus
    seen = Counter((case.file, case.line) for case in cases) + Counter((skip.file, skip.line) for skip in skips)
    total = sum(len(read_table(file).rows) for file in shipped_files())
    assert len(seen) == total > 30_000
    # The time of a row may be scored where its power says nothing.
    both = {(case.file, case.line) for case in cases} & {(skip.file, skip.line) for skip in skips}
    assert all("power" in skip.reason for skip in skips if (skip.file, skip.line) in both)
    assert all(skip.reason for skip in skips)


def test_every_network_row_can_be_predicted(corpus: tuple[list[Case], list[Skip]]) -> None:
    cases, skips = corpus
    assert Counter(skip.reason for skip in skips if skip.file == "networks") == {}
    assert Counter(case.group.devices for case in cases if case.group is not None) == {2: 8, 4: 8}


def test_the_measured_rows_of_each_stack_are_those_of_the_corpus(corpus: tuple[list[Case], list[Skip]]) -> None:
    others, _ = read_files([*shipped_files(with_peers=True)[-2:], *serving_files()[:-1]])
    shipped = folder().joinpath("rows.csv").read_text("utf-8")
    assert stack_rows([*corpus[0], *others]) == shipped, "run python -m tests.data.regenerate"
    assert stack_rows(corpus[0][1:]) != shipped


def test_families_are_told_by_their_headers() -> None:
    names = {read_table(file).name: family_of(read_table(file)).name for file in shipped_files() if file.name.endswith(".csv")}
    assert names["mlperf"] == names["networks"] == "networks"
    assert len({*names.values()}) == 9


def test_the_hash_stands_for_the_content(write: Write) -> None:
    first = data_hash([write(ROW)])
    assert data_hash([write(ROW)]) == first
    assert data_hash([write(ROW.replace("0.01", "0.02"))]) != first
    assert data_hash() == data_hash()


def stack_of(**words: str) -> str:
    return conditions_of("somebody", words)[0].stack


def test_the_last_rule_that_fits_the_software_wins() -> None:
    cudnn = "cudnn (2016-02; cuDNN presumed R4, not printed in the log)"
    assert stack_of(family="layers", software="Caffe", library=cudnn) == "caffe-cudnn4"
    assert stack_of(software="pytorch-2.1.0/cu121") == "pytorch-2"
    product = {"software": "vllm-0.24.0", "op": "gemm", "precision": "fp8_block"}
    assert stack_of(**product, kernel="TritonFp8BlockScaledMMKernel") == "vllm-triton"
    assert stack_of(**product, kernel="CutlassFp8BlockScaledMMKernel") == "serving"


@pytest.mark.parametrize(("hardware", "cells", "stack"), [
    ("l40s", {"op": "bmm", "dtype": "fp8", "batch": "4", "software": "trtllm-1.0.0"}, "tensorrt-llm-fp8-block"),
    ("h100_sxm5_80gb", {"op": "bmm", "dtype": "fp8", "batch": "4", "software": "trtllm-1.0.0"}, "tensorrt-llm"),
    ("l40s", {"op": "gemm", "dtype": "fp8_block", "software": "trtllm-1.3.0rc20"}, "tensorrt-llm-fp8-block"),
    ("l40s", {"op": "gemm", "dtype": "fp8", "software": "sglang-0.5.14"}, "sglang"),
])  # fmt: skip
def test_op_precision_kernel_and_architecture_say_which_stack_ran(
    write: Write, hardware: str, cells: dict[str, str], stack: str
) -> None:
    (case,), _ = rows(write, KERNELS, kernel(m="64", n="128", k="256", hardware=hardware, **cells))
    assert case.stack_id == stack


def test_a_corpus_file_is_compressed_the_same_way_every_time() -> None:
    for file in shipped_files():
        if file.name.endswith(".gz"):
            assert file.read_bytes()[4:8] == b"\0\0\0\0"  # no time in the header
        assert Path(str(file)).stat().st_size < 1 << 20
