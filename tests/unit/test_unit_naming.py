"""Names as people, papers and drivers write them: what they mean, what is ambiguous, and that no alias hides an id."""

from __future__ import annotations

import pytest

from archsim.base.errors import UnknownName
from archsim.base.naming import AmbiguousName, plain
from archsim.detect.catalog import find as device
from archsim.device import catalog as devices
from archsim.estimation.request import make_request, precision_of
from archsim.node import spec as nodes
from archsim.stack import catalog as stacks
from archsim.stack.choose import candidates, chosen, named
from archsim.study.comparison import ComparedDevices
from archsim.study.knob import exact_word
from archsim.trace import file as networks
from archsim.trace.task import task_of
from tests.each import each

DEVICES = {
    "GTX 1080": "gtx_1080", "NVIDIA GeForce GTX 1080": "gtx_1080", "gtx-1080": "gtx_1080", "NVIDIA GTX 1080": "gtx_1080",
    "GTX 1080 Ti": "gtx_1080_ti", "Core i7-6700K": "i7_6700k", "Intel(R) Core(TM) i7-6700K CPU @ 4.00GHz": "i7_6700k",
    "Intel i7-6700K": "i7_6700k", "K40": "tesla_k40", "Nvidia K80": "tesla_k80", "Jetson TX1": "tegra_x1",
    "Xeon E5-2630 v3": "xeon_e5_2630_v3", "Intel(R) Xeon(R) CPU E5-2630 v3 @ 2.40GHz": "xeon_e5_2630_v3",
    "2x Xeon E5-2630 v3": "xeon_e5_2630_v3_2s", "Tesla V100": "tesla_v100_sxm2", "Tesla V100-SXM2-16GB": "tesla_v100_sxm2",
    "GeForce GTX TITAN X": "titan_x_maxwell", "NVIDIA TITAN X (Pascal)": "titan_x_pascal",
    "NVIDIA H100 80GB HBM3": "h100_sxm5_80gb",
}  # fmt: skip
NETWORKS = {
    "AlexNet": "alexnet", "ResNet-50": "resnet_50", "ResNet50": "resnet_50", "VGG16": "vgg_16", "VGG-16": "vgg_16",
    "Inception v3": "inception_v3", "Inception-v1": "googlenet", "GoogLeNet": "googlenet", "ViT-B/16": "vit_base_16",
    "BERT-base-uncased": "bert_base", "Llama 2 7B": "llama_2_7b", "DenseNet-121": "densenet_121", "YOLOv3": "yolo_v3",
}  # fmt: skip
STACKS = {  # (name, device) -> stack
    ("Caffe", "gtx_1080"): "caffe-cudnn5.1", ("Caffe", "tegra_x1"): "caffe-cudnn4", ("Caffe", "i7_6700k"): "caffe-openblas",
    ("TensorFlow", "gtx_1080"): "tensorflow-cudnn5.1", ("TensorFlow", "i7_6700k"): "tensorflow-eigen",
    ("TensorFlow", "tesla_v100_sxm2"): "tensorflow-cudnn7.4", ("PyTorch", "rtx_4090"): "pytorch-2",
    ("PyTorch 2", "i7_6700k"): "pytorch-cpu", ("Torch", "tesla_k40"): "torch7-cudnn5.1",
    ("cuDNN 5.1", "gtx_1080"): "torch7-cudnn5.1",
    ("Caffe with cuDNN 7.1", "gtx_1080"): "caffe-cudnn7.1", ("Caffe+cuDNN v5.1", "tesla_k40"): "caffe-cudnn5.1",
    ("TensorRT", "tesla_v100_sxm2"): "tensorrt-8", ("TensorRT", "tegra_x2"): "tensorrt-tx2",
    ("Intel Caffe", "i7_3820"): "intel-mkl",
    ("CAFFE-CUDNN5.1", "i7_6700k"): "caffe-cudnn5.1", ("vLLM", "rtx_4090"): "vllm-0.14",
}  # fmt: skip


@each(("name", "known"), DEVICES.items())
def test_a_device_is_found_by_the_names_that_people_and_drivers_use(name, known):
    assert device(name).identity.id == known


@each(("name", "known"), NETWORKS.items())
def test_a_network_is_found_by_the_names_that_papers_use(name, known):
    assert networks.canonical(name) == known


@each(("asked", "known"), STACKS.items())
def test_a_framework_alone_is_the_stack_that_fits_the_device(asked, known):
    name, hw = asked
    spec = device(hw)
    assert chosen(name, spec.kind, spec.identity.default_stack) == known


@each(("name", "known"), {"FP16": "fp16", "float32": "fp32", "Half": "fp16", "INT8": "int8", "bfloat16": "bf16"}.items())
def test_precisions(name, known):
    assert precision_of(name) == known


@each(("name", "known"), {"training": "training_step", "Inference": "inference", "forward+backward": "forward_backward"}.items())
def test_tasks(name, known):
    assert task_of(name) == known


def test_what_several_bear_is_an_error_that_lists_them():
    with pytest.raises(AmbiguousName, match="'Titan X' is ambiguous; it could be titan_x_maxwell or titan_x_pascal"):
        device("Titan X")
    with pytest.raises(AmbiguousName, match=r"caffe-cudnn5.1, .* or torch7-cudnn5.1"):
        chosen("cuDNN 5.1", "gpu", "pytorch-2")
    with pytest.raises(AmbiguousName, match="caffe-openblas"):
        named("Caffe")
    with pytest.raises(AmbiguousName, match=r"caffe-native"):
        exact_word("gpu", "stack", "Caffe")  # a sweep may have several devices


@pytest.mark.parametrize(
    ("find", "name", "near"),
    [
        (device, "GTX 1081", "gtx_1080"), (device, "Tesla K41", "tesla_k40"), (device, "Quadro", "quadro_p4000"),
        (networks.canonical, "ResNet", "resnet_"), (networks.canonical, "BERT", "bert_base, bert_large"),
        (networks.canonical, "Inceptoin v3", "inception_v3"), (stacks.canonical, "tensorflw-cudnn5.1", "tensorflow-cudnn5.1"),
        (precision_of, "fp15", "fp16"), (task_of, "traning", "training_step"), (nodes.find, "dgx1", "dgx_1"),
    ],
)  # fmt: skip
def test_a_typo_names_the_nearest(find, name, near):
    with pytest.raises(UnknownName, match=f"nearest: .*{near}"):
        find(name)


CATALOGS = {
    "device": (devices.names(), devices.aliases(), lambda name: device(name).identity.id),
    "network": (tuple(networks.names()), networks.aliases(), networks.canonical),
    "stack": (stacks.names(), {}, stacks.canonical),
    "node": (nodes.names(), {}, lambda name: nodes.find(name).node.id),
}


@pytest.mark.parametrize("what", CATALOGS)
def test_no_name_hides_an_id(what):
    ids, aliases, find = CATALOGS[what]
    spelled = {plain(name): name for name in ids}
    assert len(spelled) == len(ids)  # two ids that are spelled alike could not be told apart
    assert {name: find(name) for name in ids} == {name: name for name in ids}
    own = {(known, plain(text)) for known, texts in aliases.items() for text in texts}
    assert {(known, spelled[text]) for known, text in own if text in spelled and spelled[text] != known} == set()


def test_a_variant_of_a_stack_is_meant_by_its_id_only():
    assert "torch7-cudnn5.1-frugal" not in candidates("torch7")
    assert chosen("torch7-cudnn5.1-frugal", "gpu", "pytorch-2") == "torch7-cudnn5.1-frugal"


def test_an_estimate_says_what_a_framework_alone_was_taken_for():
    request = make_request("ResNet-50", "GTX 1080", stack="TensorFlow", precision="FP16", task="training")
    exact = make_request("resnet_50", "gtx_1080", stack="tensorflow-cudnn5.1", precision="fp16", task="training_step")
    assert (request.network, request.precision, request.task) == ("resnet_50", "fp16", "training_step")
    assert (request.trace_digest, request.stack) == (exact.trace_digest, exact.stack)
    said = "stack tensorflow-cudnn5.1: what TensorFlow means on gtx_1080; --stack tensorflow-cudnn5.1 says it exactly"
    assert set(request.notes) - set(exact.notes) == {said}


def test_a_missing_file_is_no_network_of_that_name():
    with pytest.raises(Exception, match="no such file"):
        networks.load("./vgg_16")


def test_a_framework_alone_is_compared_with_what_it_means_on_each_device():
    found = ComparedDevices(["gtx_1080", "tegra_x1", "i7_6700k"], ["Caffe", "tensorflow-eigen"])
    asked = {(entrant.device, entrant.stack) for entrant in found.entrants if entrant.stack != "tensorflow-eigen"}
    both = {(device, stack) for device in ("gtx_1080", "tegra_x1") for stack in ("caffe-cudnn5.1", "caffe-cudnn4")}
    assert asked == both | {("i7_6700k", "caffe-openblas")}
