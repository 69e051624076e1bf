"""The cells whose predictions are held to 12 digits, and how they are computed."""

from __future__ import annotations

import json
from pathlib import Path

FILE = Path(__file__).with_name("golden.json")
DIGITS = 12

# (network, device, stack, batch, task, precision, fidelity)
CELLS = [
    ("alexnet", "tegra_x1", "caffe-cudnn4", 1, "inference", "fp32", "analytical"),
    ("alexnet", "tegra_x1", "caffe-cudnn4", 128, "inference", "fp16", "analytical"),
    ("alexnet", "tegra_x1", "caffe-cudnn4", 1, "inference", "fp32", "roofline"),
    ("alexnet", "i7_6700k", "intel-mkl", 48, "inference", "fp32", "analytical"),
    ("alexnet_owt", "titan_x_maxwell", "torch7-cudnn4", 128, "forward_backward", "fp32", "analytical"),
    ("vgg_16", "gtx_1080", "torch7-cudnn5.1", 16, "forward_backward", "fp32", "analytical"),
    ("vgg_a", "titan_x_maxwell", "caffe-native", 64, "backward", "fp32", "analytical"),
    ("googlenet", "tesla_k40", "caffe-cudnn4", 16, "training_step", "fp32", "analytical"),
    ("resnet_50", "titan_x_pascal", "torch7-cudnn5.1", 16, "training_step", "fp32", "analytical"),
    ("resnet_152", "tesla_v100_sxm2", "ideal", 32, "inference", "fp16", "analytical"),
    ("mobilenet_v2", "xeon_e5_2630_v3", "caffe-openblas", 4, "training_step", "fp32", "analytical"),
    ("lstm_32", "tesla_k80", "torch7-cudnn5.1", 64, "training_step", "fp32", "analytical"),
    ("inception_v3", "i7_5930k", "torch7-cpu", 2, "inference", "fp32", "roofline"),
]


def compute() -> dict[str, dict[str, float]]:
    """latency_s and energy_j of every cell, rounded to DIGITS significant digits."""
    import archsim

    found = {}
    for net, hw, stack, batch, task, precision, fidelity in CELLS:
        e = archsim.estimate(net=net, hw=hw, stack=stack, batch=batch, task=task, precision=precision, fidelity=fidelity)
        name = f"{net} on {hw}, {stack}, {task}, batch {batch}, {precision}, {fidelity}"
        found[name] = {key: float(f"{getattr(e, key):.{DIGITS}g}") for key in ("latency_s", "energy_j")}
    return found


def text(values: dict[str, dict[str, float]]) -> str:
    """As the file holds them."""
    return json.dumps(values, indent=1) + "\n"
