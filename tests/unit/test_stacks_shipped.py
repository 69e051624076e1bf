"""The shipped stacks: all run networks, and name constants that exist."""

from __future__ import annotations

from pathlib import Path

import pytest

import archsim
from archsim.base.errors import Unsupported
from archsim.calibration.constants import FULL, default
from archsim.device import catalog as devices
from archsim.lower.columns import Role
from archsim.lower.context import Context
from archsim.lower.conv import ALGORITHMS
from archsim.stack import catalog
from archsim.stack.compose import AXES, Component, components, part_names, part_versions
from archsim.stack.key import leaves, markdown
from archsim.stack.stack import Stack
from archsim.trace.op import KINDS

from ..each import each

NETWORKS = ("alexnet", "resnet_50", "lstm_32")
VENDORS = {"AMD": "mi100", "Apple": "apple_m1_gpu"}  # whose libraries have no kernel for another maker's card
DEVICES = {"gpu": "tesla_v100_sxm2", "cpu": "xeon_e5_2630_v3", "any": "tesla_v100_sxm2", "tpu": "tpu_v3"}


def constants_of(stack: Stack) -> set[str]:
    """The names of constants that a stack's file mentions."""
    conv = stack.conv
    tables = (conv.algorithms, conv.tensor, *(conv.candidates(one, False) for one in conv.architectures))
    algorithms = {constant for table in tables for rows in table.values() for constant in rows.values()}
    return algorithms | set(stack.efficiency.values()) | ({stack.host} - {""})


def latency(stack: str, net: str, task: str = "inference", hw: str | None = None, **how: object) -> float:
    found = catalog.find(stack)
    old = found.architectures and "volta" not in found.architectures
    device = hw or VENDORS.get(found.vendor) or ("gtx_1080" if old else DEVICES[found.kind])
    return float(archsim.estimate(net=net, hw=device, stack=stack, batch=16, task=task, **how).latency_s)  # type: ignore[arg-type]


@each("name", catalog.names())
def test_every_constant_exists(name: str) -> None:
    assert constants_of(catalog.find(name)) <= {*default().constants, FULL}


def test_the_readme_holds_the_table_of_keys_that_the_record_declares() -> None:
    readme = Path(__file__).parents[2].joinpath("traces", "stacks", "README.md").read_text("utf-8")
    assert markdown(Stack) in readme, "the table under `## Keys` is what python -m tests.data.regenerate writes"


def test_a_constant_that_does_not_exist_is_noticed() -> None:
    from dataclasses import replace

    wrong = replace(catalog.find("caffe-cudnn4"), host="host.nobody")
    assert constants_of(wrong) - {*default().constants, FULL} == {"host.nobody"}


@each("name", catalog.names())
def test_every_loop_is_that_of_an_op_kind_or_of_a_role(name: str) -> None:
    stack = catalog.find(name)
    known = {*KINDS, "stored_batch_norm", *(role.value for role in Role)}  # of an op with stored statistics
    assert {key.partition(".")[0] for key in stack.loop_rows} <= known
    assert {*stack.in_place} <= {*KINDS}


@each("name", catalog.names())
def test_every_algorithm_is_one_that_lowering_knows(name: str) -> None:
    stack = catalog.find(name)
    named = {algorithm for table in (stack.conv.algorithms, stack.conv.tensor) for rows in table.values() for algorithm in rows}
    assert named <= set(ALGORITHMS)


def all_components() -> list[Component]:
    """Every table of every shipped component, and the values of the stacks themselves."""
    found = [catalog.own_values(name) for name in catalog.names()]
    for axis in AXES:
        for name in part_names(axis):
            for version in part_versions(axis, name) or [""]:
                for kind in ("gpu", "cpu"):
                    found += components(axis, f"{name} {version}".strip(), kind)
    return found


def test_every_value_has_a_source_and_every_source_a_value() -> None:
    names = {"kind", "framework"}  # they say what the component is
    without, unused, short = set(), set(), set()
    for component in all_components():
        assigned = component.assigned(Stack)
        without |= {(component.label, path) for path, one in assigned.items() if not one.source and path[0] not in names}
        unused |= {(component.label, key) for key in component.unused(Stack)}
        short |= {text for text in component.sources.values() if len(text) <= 20}
    assert (without, unused, short) == (set(), set(), set())


def test_no_component_sets_a_value_twice() -> None:
    for component in all_components():
        paths = [path for path, _ in leaves(Stack, component.table)]
        assert len(paths) == len({*paths}), component.label


def test_every_component_is_part_of_a_stack() -> None:
    used = {(axis, part.partition(" ")[0]) for name in catalog.names() for axis, part in catalog.composition(name).parts.items()}
    assert used == {(axis, name) for axis in AXES for name in part_names(axis)}


@each("name", catalog.names())
def test_every_stack_runs_networks(name: str) -> None:
    inference_only = name.startswith("tensorrt") or catalog.find(name).kind == "tpu"
    for net in NETWORKS:
        inference = latency(name, net)
        assert inference > 0
        if not inference_only:
            assert latency(name, net, "training_step") > inference


@pytest.mark.parametrize("name", ["tensorrt-1", "tensorrt-tx2", "tensorrt-8"])
def test_tensorrt_does_not_train(name: str) -> None:
    with pytest.raises(Unsupported, match="no algorithm"):
        latency(name, "alexnet", "training_step")


@pytest.mark.parametrize("name", ["torch7-cudnn3", "caffe-cudnn4", "torch7-cudnn5.0", "torch7-cudnn5.1", "caffe-cudnn7.1"])
def test_cudnn_keeps_its_compiled_kernels_on_kepler(name: str) -> None:
    """Kernels in the machine language of Maxwell do not run there; the frequency domain and transforms apart do."""
    conv = catalog.find(name).conv
    forward, general = (conv.candidates(architecture, False)["forward"] for architecture in ("kepler", "maxwell"))
    assert forward["implicit_gemm"] == "conv.cudnn1" != general["implicit_gemm"]
    assert set(general) - set(forward) == {"winograd"} & set(general)
    assert conv.candidates("kepler", False)["backward_filter"]["implicit_gemm"] == "conv.cudnn1"


@pytest.mark.parametrize(
    ("older", "newer", "added"),
    [("1", "3", "fft"), ("3", "4", "fft_tiling"), ("4", "5.0", "winograd"), ("5.0", "5.1", "winograd_nonfused")],
)
def test_library_generations_add_algorithms(older: str, newer: str, added: str) -> None:
    before, after = (catalog.find(f"torch7-cudnn{version}").conv.algorithms["forward"] for version in (older, newer))
    assert set(after) - set(before) >= {added}
    assert set(before) <= set(after)


def test_groups_run_as_one_kernel_from_cudnn_7_on() -> None:
    assert catalog.find("mxnet-cudnn5.1").conv.grouped == "sequential"
    assert catalog.find("mxnet-cudnn7.0").conv.grouped == "batched"


def test_scripts_of_some_frameworks_build_their_own_graph() -> None:
    for name in set(catalog.names()) - {"intel-mkl"}:  # a fork of Caffe with scripts of its own
        stack = catalog.find(name)
        expected = {f: f"alexnet_s@{f}" for f in ("mxnet", "tensorflow", "caffe")}.get(stack.framework)
        assert stack.variants.get("alexnet_s") == expected
        expected = {f: f"resnet_56@{f}" for f in ("cntk", "tensorflow")}.get(stack.framework)
        assert stack.variants.get("resnet_56") == expected


def test_tensor_tiles_serve_narrow_precisions_on_devices_with_tensor_cores_only() -> None:
    from archsim.estimation.request import make_request
    from archsim.lower.lower import lower

    request = make_request("vgg_a", "tesla_v100_sxm2", stack="mxnet-cudnn7.0", precision="fp16")
    depths = {
        tensor: set(lower(request.trace.ops, request.stack, "gpu", "fp16", False, tensor=tensor).kernels.tile_k.tolist())
        for tensor in (True, False)
    }
    assert 32 in depths[True]
    assert 32 not in depths[False]


@each("hw", ["tesla_v100_sxm2", "tesla_t4", "rtx_2080_ti", "a100_sxm4_40gb", "l4", "h100_sxm5_80gb"])
@each("name", ["pytorch-2", "tensorrt-8"])
def test_the_largest_tiles_of_tensor_cores_fit_the_chip(name: str, hw: str) -> None:
    stack, device = catalog.find(name), devices.find(hw).device
    context = Context(stack=stack, device_kind="gpu", element=2, training=False, tensor=True,
                      architecture=device.identity.architecture)  # fmt: skip
    for kind in ("gemm", "conv_forward", "transformed"):
        tiles = stack.menus[context.menu(kind)].on(context.architecture)
        fitting = [tile.m * tile.n for tile in tiles if tile.shared <= device.sm.shared_memory_cta]
        assert max(fitting) >= 128 * 128


def test_fused_inference_is_faster_than_op_by_op() -> None:
    assert latency("tensorrt-1", "googlenet", hw="tegra_x1") < latency("caffe-cudnn5.1", "googlenet", hw="tegra_x1")


def test_unfolding_on_one_thread_does_not_scale() -> None:
    slow, fast = (latency("mxnet-openblas", "resnet_56", "training_step", threads=n) for n in (1, 8))
    assert slow < 1.2 * fast


def test_channels_last_saves_the_copies_around_tensor_cores() -> None:
    for precision, most, least in (("fp16", 0.9, 0.5), ("fp32", 1.0, 1.0)):
        cell = {"net": "resnet_50", "hw": "tesla_v100_sxm2", "batch": 64, "precision": precision}
        first, last = (archsim.estimate(**cell, stack=name).latency_s for name in ("pytorch-2", "pytorch-2-channels-last"))
        assert least * first <= last <= most * first


def test_frameworks_build_the_networks_of_their_own_zoos() -> None:
    for net, stack, graph in (
        ("alexnet", "pytorch-2", "alexnet_owt"), ("alexnet", "pytorch-cpu", "alexnet_owt"),
        ("googlenet", "pytorch-2", "googlenet@torchvision"), ("alexnet", "tensorflow-cudnn7.4", "alexnet@tensorflow"),
        ("alexnet", "caffe-cudnn5.1", "alexnet"), ("alexnet", "mxnet-cudnn7.1", "alexnet@mxnet"),
    ):  # fmt: skip
        assert latency(stack, net) == latency(stack, graph)


def test_an_estimate_says_that_the_framework_builds_another_graph() -> None:
    said = archsim.estimate(net="alexnet", hw="rtx_2080_ti", stack="pytorch-2").assumptions
    assert "network alexnet: the graph alexnet_owt, which pytorch builds under this name" in said
    assert not any("graph" in note for note in archsim.estimate(net="alexnet", hw="tegra_x1").assumptions)


def test_a_framework_that_grants_no_workspace_gets_slower_convolutions_where_the_library_has_kernels_of_its_own() -> None:
    def ratio(hw: str) -> float:
        return latency("torch7-cudnn5.1-frugal", "resnet_50", hw=hw) / latency("torch7-cudnn5.1", "resnet_50", hw=hw)

    assert 1.2 < ratio("gtx_1080") < 2.0
    assert ratio("tesla_k40") < ratio("gtx_1080")  # cuDNN has the same compiled kernels for both on Kepler


def test_kernels_assembled_for_some_architectures_run_nowhere_else_but_on_kepler_where_compiled_ones_take_their_place() -> None:
    assert latency("neon-maxas", "vgg_16", "training_step", hw="gtx_1080") < latency(
        "torch7-cudnn5.1", "vgg_16", "training_step", hw="gtx_1080"
    )
    assert latency("neon-maxas", "vgg_16", "training_step", hw="tesla_k40") > latency(
        "torch7-cudnn5.1", "vgg_16", "training_step", hw="tesla_k40"
    )
    with pytest.raises(Unsupported, match="neon-maxas: its kernels run on kepler, maxwell, pascal, pascal_gp100, not on volta"):
        latency("neon-maxas", "alexnet", hw="tesla_v100_sxm2")
