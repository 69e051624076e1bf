"""The op vocabulary: one table, `KINDS`, from the name in a trace file to the class that knows shapes and work.

To add a kind, write its class in a module of `kinds` and list it here.
"""

from __future__ import annotations

from archsim.trace.dims import Dim, Shape
from archsim.trace.kind import BACKWARD, BACKWARD_DATA, BACKWARD_FILTER, FORWARD, PHASES, UPDATE, Kind
from archsim.trace.kinds.convolution import AvgPool, Conv2d, ConvTranspose2d, GlobalAvgPool, MaxPool, sides
from archsim.trace.kinds.dense import BiasAdd, Embedding, Experts, Linear, Matmul
from archsim.trace.kinds.general import Collective, ElementWise, Gather, GroupNorm, Reduce, Scatter, Stated, Traffic
from archsim.trace.kinds.normalise import ArgMax, BatchNorm, CrossEntropy, LayerNorm, Lrn, RmsNorm, Softmax
from archsim.trace.kinds.pointwise import (
    OPTIMISERS,
    Add,
    Dropout,
    Floor,
    Gated,
    Gelu,
    GeluTanh,
    HardSigmoid,
    HardSwish,
    LeakyRelu,
    Mask,
    Mul,
    Quantise,
    Relu,
    Relu6,
    Rotary,
    Scale,
    ScaleBy,
    Sigmoid,
    Silu,
    Tanh,
    Update,
)
from archsim.trace.kinds.sequence import Attention, Gru, LatentAttention, Lstm, LstmCell, Rnn
from archsim.trace.kinds.shaping import Concat, Pad, Reshape, Slice, Transpose, Upsample

KINDS: dict[str, type[Kind]] = {
    kind.op: kind
    for kind in (
        Conv2d, ConvTranspose2d, Linear, Matmul, Embedding, BiasAdd,
        MaxPool, AvgPool, GlobalAvgPool,
        Lrn, BatchNorm, LayerNorm, RmsNorm, Softmax, CrossEntropy, ArgMax,
        Relu, Relu6, LeakyRelu, Sigmoid, Tanh, Gelu, GeluTanh, Silu, HardSigmoid, HardSwish, Gated,
        Rotary, Dropout, Mask, Floor, Scale, ScaleBy, Quantise, Add, Mul,
        Concat, Pad, Reshape, Transpose, Slice, Upsample,
        Lstm, LstmCell, Gru, Rnn, Attention, LatentAttention, Experts,
        GroupNorm, ElementWise, Reduce, Gather, Scatter, Traffic, Stated, Collective,
        Update,
    )
}  # fmt: skip

__all__ = [
    "BACKWARD", "BACKWARD_DATA", "BACKWARD_FILTER", "FORWARD", "KINDS", "OPTIMISERS", "PHASES", "UPDATE", "Add", "ArgMax",
    "Attention", "AvgPool", "BatchNorm", "BiasAdd", "Collective", "Concat", "Conv2d", "ConvTranspose2d", "CrossEntropy", "Dim",
    "Dropout", "ElementWise", "Embedding", "Experts", "Floor", "Gated", "Gather", "Gelu", "GeluTanh", "GlobalAvgPool",
    "GroupNorm", "Gru", "HardSigmoid", "HardSwish", "Kind", "LatentAttention", "LayerNorm", "LeakyRelu", "Linear", "Lrn",
    "Lstm", "LstmCell", "Mask", "Matmul", "MaxPool", "Mul", "Pad", "Quantise", "Reduce", "Relu", "Relu6", "Reshape", "RmsNorm",
    "Rnn", "Rotary", "Scale", "ScaleBy", "Scatter", "Shape", "Sigmoid", "Silu", "Slice", "Softmax", "Stated", "Tanh", "Traffic",
    "Transpose", "Update", "Upsample", "sides",
]  # fmt: skip
