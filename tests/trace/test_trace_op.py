"""Op kinds: shapes, multiply-accumulates, FLOP and parameters, each against numbers worked out by hand."""

from __future__ import annotations

import dataclasses
import itertools
import re

import pytest

from archsim.trace.op import (
    BACKWARD,
    BACKWARD_DATA,
    BACKWARD_FILTER,
    KINDS,
    OPTIMISERS,
    Add,
    ArgMax,
    Attention,
    AvgPool,
    BatchNorm,
    BiasAdd,
    Collective,
    Concat,
    Conv2d,
    ConvTranspose2d,
    CrossEntropy,
    Dropout,
    ElementWise,
    Embedding,
    Experts,
    Floor,
    Gated,
    Gather,
    Gelu,
    GeluTanh,
    GlobalAvgPool,
    GroupNorm,
    Gru,
    HardSigmoid,
    HardSwish,
    Kind,
    LatentAttention,
    LayerNorm,
    LeakyRelu,
    Linear,
    Lrn,
    Lstm,
    LstmCell,
    Mask,
    Matmul,
    MaxPool,
    Mul,
    Pad,
    Quantise,
    Reduce,
    Relu,
    Relu6,
    Reshape,
    RmsNorm,
    Rnn,
    Rotary,
    Scale,
    ScaleBy,
    Scatter,
    Sigmoid,
    Silu,
    Slice,
    Softmax,
    Stated,
    Tanh,
    Traffic,
    Transpose,
    Update,
    Upsample,
)

from ..each import each

IMAGE = (2, 4, 6, 6)

EACH = {  # FLOP for each value, of which there are as many before and after
    Softmax(): 5, Relu(): 1, Relu6(): 2, Sigmoid(): 4, Tanh(): 1, Gelu(): 5, GeluTanh(): 8, Mask(): 1, Floor(): 1, Silu(): 5,
    LeakyRelu(): 2, HardSigmoid(): 4, HardSwish(): 5, ScaleBy(factor=0.1): 1, Dropout(): 0, Dropout(training=True): 2,
    Quantise(): 2, Quantise(dynamic=True): 4, ElementWise(function="sin"): 1,
}  # fmt: skip

# kind, input shapes, recorded output, computed output, MACs, FLOP, parameters
CASES = [
    *((kind, [(2, 5)], (), (2, 5), 0, 10 * flop, 0) for kind, flop in EACH.items()),
    # 3 x 3 windows on 6 x 6: 4 x 4; 2*8*16 outputs, 36 taps each, one bias each
    (Conv2d(kernel=(3, 3)), [IMAGE], (2, 8, 4, 4), (2, 8, 4, 4), 256 * 36, 2 * 256 * 36 + 256, 8 * 36 + 8),
    (Conv2d(kernel=(3, 3), bias=False), [IMAGE], (2, 8, 4, 4), (2, 8, 4, 4), 9216, 18432, 288),
    (Conv2d(kernel=(3, 3), groups=2, bias=False), [IMAGE], (2, 8, 4, 4), (2, 8, 4, 4), 4608, 9216, 144),
    (Conv2d(kernel=(3, 3), pad=(1, 1), stride=(2, 2)), [IMAGE], (2, 1, 3, 3), (2, 1, 3, 3), 648, 1314, 37),
    (Conv2d(kernel=(3, 3), dilation=(2, 2)), [IMAGE], (2, 1, 2, 2), (2, 1, 2, 2), 288, 584, 37),
    (Conv2d(kernel=(3, 3), pad=(0, 0, 1, 1), stride=(2, 2)), [IMAGE], (2, 1, 3, 3), (2, 1, 3, 3), 648, 1314, 37),
    (Conv2d(kernel=(1, 6)), [IMAGE], (2, 3, 6, 1), (2, 3, 6, 1), 36 * 24, 2 * 36 * 24 + 36, 3 * 25),
    # 2*4*36 pixels add a window of 4 in each of 3 channels: (6 - 1) * 2 + 2 = 12 pixels to a side
    (ConvTranspose2d(kernel=(2, 2), stride=(2, 2)), [IMAGE], (2, 3), (2, 3, 12, 12), 288 * 12, 2 * 288 * 12 + 864, 3 * 17),
    (ConvTranspose2d(kernel=(3, 3), stride=(2, 2), pad=(1, 1), bias=False), [IMAGE], (2, 1), (2, 1, 11, 11), 2592, 5184, 36),
    (Linear(), [(5, 7)], (5, 3), (5, 3), 105, 225, 24),
    (Linear(bias=False), [(2, 5, 7)], (2, 5, 3), (2, 5, 3), 210, 420, 21),
    (Matmul(), [(2, 3, 4), (2, 4, 5)], (), (2, 3, 5), 120, 240, 0),
    (Matmul(transpose_b=True), [(2, 3, 4), (2, 5, 4)], (), (2, 3, 5), 120, 240, 0),
    (Matmul(transpose_a=True), [(2, 4, 3), (2, 4, 5)], (), (2, 3, 5), 120, 240, 0),
    (Embedding(vocabulary=100, features=8), [(3, 5)], (), (3, 5, 8), 0, 0, 800),
    (BiasAdd(), [IMAGE], (), IMAGE, 0, 288, 4),
    (BiasAdd(axis=-1), [(2, 7)], (), (2, 7), 0, 14, 7),
    (MaxPool(kernel=(3, 3), stride=(2, 2)), [IMAGE], (), (2, 4, 2, 2), 0, 32 * 9, 0),
    (MaxPool(kernel=(3, 3), stride=(2, 2), ceil_mode=True), [IMAGE], (), (2, 4, 3, 3), 0, 72 * 9, 0),
    (AvgPool(kernel=(2, 2), stride=(2, 2)), [IMAGE], (), (2, 4, 3, 3), 0, 72 * 4, 0),
    (GlobalAvgPool(), [IMAGE], (), (2, 4, 1, 1), 0, 288, 0),
    (Lrn(size=5), [IMAGE], (), IMAGE, 0, 288 * 9, 0),
    (BatchNorm(), [IMAGE], (), IMAGE, 0, 288 * 2, 8),
    (BatchNorm(training=True), [IMAGE], (), IMAGE, 0, 288 * 7, 8),
    (LayerNorm(), [(2, 5)], (), (2, 5), 0, 70, 10),
    (RmsNorm(), [(2, 5)], (), (2, 5), 0, 40, 5),
    (RmsNorm(axis=1), [IMAGE], (), IMAGE, 0, 288 * 4, 4),
    (CrossEntropy(), [(2, 5)], (), (2,), 0, 54, 0),
    (CrossEntropy(), [(3, 2, 5), (3, 2)], (), (3, 2), 0, 162, 0),
    (ArgMax(), [(3, 2, 5)], (), (3, 2), 0, 30, 0),
    (Scale(), [IMAGE], (), IMAGE, 0, 288, 4),
    (Scale(axis=-1), [(2, 5)], (), (2, 5), 0, 10, 5),
    (Rotary(width=4), [(2, 3, 8)], (), (2, 3, 8), 0, 144, 0),
    (Add(), [(2, 5), (2, 5), (2, 5)], (), (2, 5), 0, 20, 0),
    (Add(), [(2, 5), (5,)], (), (2, 5), 0, 10, 0),
    (Mul(), [(2, 4, 6, 6), (2, 4, 1, 1)], (), IMAGE, 0, 288, 0),
    (Concat(), [(2, 3, 6), (2, 4, 6)], (), (2, 7, 6), 0, 0, 0),
    (Concat(axis=-1), [(2, 3), (2, 4)], (), (2, 7), 0, 0, 0),
    (Pad(before=(0, 1), after=(0, 2)), [(2, 5)], (), (2, 8), 0, 0, 0),
    (Reshape(), [IMAGE], (2, 144), (2, 144), 0, 0, 0),
    (Transpose(order=(1, 0, 2)), [(2, 3, 4)], (), (3, 2, 4), 0, 0, 0),
    (Slice(axis=1, start=2, stop=5), [(2, 8, 3)], (), (2, 3, 3), 0, 0, 0),
    (Upsample(), [IMAGE], (2, 4, 12, 12), (2, 4, 12, 12), 0, 0, 0),
    (Upsample(mode="bilinear"), [IMAGE], (2, 4, 9, 8), (2, 4, 9, 8), 0, 576 * 8, 0),
    # 3 steps x 2 samples x 6 units: one gate takes 5 + 6 values of input and state; then 1 add for each bias and 1 activation
    (Rnn(hidden=6), [(3, 2, 5)], (), (3, 2, 6), 36 * 11, 2 * 36 * 11 + 36 * 2, 6 * 12),
    # three gates: 3 adds for each bias vector and 8 FLOP; of two layers the second reads the first
    (Gru(hidden=6), [(3, 2, 5)], (), (3, 2, 6), 36 * 33, 2 * 36 * 33 + 36 * 11, 18 * 12),
    (Gru(hidden=6, layers=2, biases=2), [(3, 2, 5)], (), (3, 2, 6), 36 * 69, 2 * 36 * 69 + 72 * 14, 18 * (13 + 14)),
    # both directions of layer 1 read 5 features, those of layer 2 the 12 of both
    (Lstm(hidden=6, layers=2, bidirectional=True), [(3, 2, 5)], (), (3, 2, 12), 6 * 48 * (11 + 18),
     12 * 48 * (11 + 18) + 2 * 72 * 13, 48 * (12 + 19)),
    # 3 steps x 2 samples: layer 1 takes 4*6*(5+6), layer 2 4*6*(6+6); 13 FLOP per unit, step and layer
    (Lstm(hidden=6, layers=2), [(3, 2, 5)], (), (3, 2, 6), 6 * 552, 2 * 6 * 552 + 2 * 36 * 13, 24 * (12 + 13)),
    (Lstm(hidden=6, biases=2), [(3, 2, 5)], (), (3, 2, 6), 6 * 264, 2 * 6 * 264 + 36 * 17, 24 * 13),
    (Lstm(hidden=6, layers=2, skip_input=True), [(3, 2, 6)], (), (3, 2, 6), 6 * 432, 2 * 6 * 432 + 2 * 36 * 13, 24 * (7 + 13)),
    (LstmCell(hidden=6), [(2, 5), (2, 2, 6)], (), (2, 2, 6), 2 * 264, 4 * 264 + 12 * 13, 24 * 12),
    # 2 samples x 2 heads x 3 x 3 pairs of size 4, twice; 6 FLOP a pair for the softmax
    (Attention(heads=2), [(2, 3, 8)] * 3, (), (2, 3, 8), 2 * 36 * 4, 4 * 36 * 4 + 6 * 36, 0),
    (Attention(heads=2, causal=True), [(2, 3, 8)] * 3, (), (2, 3, 8), 2 * 24 * 4, 4 * 24 * 4 + 6 * 24, 0),
    # the third of 3 queries sees the last 2 of its 3 keys: 1 + 2 + 2 pairs
    (Attention(heads=2, causal=True, window=2), [(2, 3, 8)] * 3, (), (2, 3, 8), 2 * 20 * 4, 4 * 20 * 4 + 6 * 20, 0),
    (Attention(heads=2), [(2, 3, 24)], (), (2, 3, 8), 2 * 36 * 4, 4 * 36 * 4 + 6 * 36, 0),  # side by side, the same
    (Attention(heads=4, kv_heads=2, causal=True), [(2, 3, 16)], (), (2, 3, 8), 2 * 48 * 2, 4 * 48 * 2 + 6 * 48, 0),
    (Attention(heads=4, kv_heads=2, causal=True), [(1, 1, 8), (1, 5, 4), (1, 5, 4)], (), (1, 1, 8), 80, 280, 0),
    # new tokens side by side, 1 of each sample; keys and values of 5
    (Attention(heads=4, kv_heads=2, causal=True, cached=True), [(1, 1, 16), (1, 5, 4), (1, 5, 4)], (), (1, 1, 8), 80, 280, 0),
    # 2 heads x 6 vectors of 10 features, 8 of which are values, for each of 2 samples
    (LatentAttention(heads=2, rank=8), [(2, 1, 20), (2, 6, 10)], (), (2, 1, 16), 24 * 18, 48 * 18 + 6 * 24, 0),
    (Gated(), [(2, 8)], (), (2, 4), 0, 48, 0),
    # 3 tokens through 2 of 4 experts with three matrices of 5 x 7; 2 FLOP for each weighted value
    (Experts(total=4, top=2, hidden=7), [(3, 5), (3, 4)], (), (3, 5), 6 * 105, 12 * 105 + 60, 420),
    (Experts(total=4, top=2, hidden=7, experts=2, gated=False), [(3, 5), (3, 4)], (), (3, 5), 210, 420 + 30, 140),
    (GroupNorm(groups=2), [IMAGE], (), IMAGE, 0, 288 * 7, 8),
    (ElementWise(function="mod", each=3), [(2, 5), (5,)], (), (2, 5), 0, 30, 0),
    (Reduce(function="max", axes=(1,)), [(2, 5)], (), (2, 1), 0, 10, 0),
    (Gather(), [(2, 5), (3,)], (3, 5), (3, 5), 0, 0, 0),
    (Scatter(adds=True), [(9, 5), (3,), (3, 5)], (), (9, 5), 0, 15, 0),
    (Traffic(operator="my.Op", each=2), [(2, 5)], (2, 3), (2, 3), 0, 12, 0),
    (Stated(operator="gemm", flops=100, moves=64), [(2, 5)], (2, 3), (2, 3), 0, 100, 0),
    (Collective(function="all_reduce", size=64), [(2, 5)], (2, 3), (2, 3), 0, 0, 0),
    (Update(count=10), [(10,)], (), (10,), 0, 40, 0),
    (Update(count=10, optimiser="sgd"), [(10,)], (), (10,), 0, 20, 0),
]


@each(("kind", "inputs", "recorded", "shape", "macs", "flop", "parameters"), CASES)
def test_a_kind_counts_as_worked_out_by_hand(kind, inputs, recorded, shape, macs, flop, parameters):
    out = kind.shape(inputs, recorded)
    assert out == shape
    assert (kind.macs(inputs, out), kind.flop(inputs, out), kind.parameters(inputs, out)) == (macs, flop, parameters)


def test_every_kind_has_a_case():
    assert {type(case[0]) for case in CASES} == set(KINDS.values())


WRONG = [
    (Conv2d(kernel=(3, 3)), [(2, 4)], (2, 8), "needs an input of the form [N, C, H, W], got [2, 4]"),
    (Conv2d(kernel=(3, 3)), [IMAGE, IMAGE], (2, 8, 4, 4), "takes 1 input, got 2"),
    (Conv2d(kernel=(3, 3), groups=3), [IMAGE], (2, 6, 4, 4), "3 groups, which do not divide 4 input and 6 output"),
    (Conv2d(kernel=(3, 3), groups=4), [IMAGE], (2, 6, 4, 4), "4 groups, which do not divide 4 input and 6 output"),
    (Conv2d(kernel=(9, 9), pad=(1, 1)), [IMAGE], (2, 8, 1, 1), "window of 9, too large for an input of 8"),
    (Conv2d(kernel=(3, 3), dilation=(3, 3)), [IMAGE], (2, 8, 1, 1), "window of 7"),
    (Conv2d(kernel=(3, 3)), [IMAGE], (2,), "no place for output channels"),
    (Linear(), [(5,)], (5,), "needs an input of the form [..., features]"),
    (Matmul(), [(2, 3, 4), (2, 3, 5)], (), "the inner dimensions are 4 and 3"),
    (Matmul(), [(2, 3, 4), (3, 4, 5)], (), "equal leading dimensions"),
    (Matmul(), [(3, 4)], (), "takes 2 inputs, got 1"),
    (BiasAdd(axis=3), [(2, 5)], (), "has axis 3, but its input is [2, 5]"),
    (MaxPool(kernel=(2, 2), pad=(2, 2)), [IMAGE], (), "padding [2, 2] as large as its window [2, 2]"),
    (BatchNorm(), [(5,)], (), "needs an input of the form [N, C, ...]"),
    (CrossEntropy(), [(5,)], (), "needs logits of the form [..., classes]"),
    (CrossEntropy(), [(2, 5), (3,)], (), "one label for each row of [2, 5], got [3]"),
    (Softmax(axis=2), [(2, 5)], (), "has axis 2"),
    (Attention(heads=2), [(2, 3, 20)], (), "2 heads and 2 x 2 of keys and values, which do not divide [2, 3, 20]"),
    (Rotary(width=3), [(2, 3, 6)], (), "turns heads of 3 features"),
    (Rotary(width=4), [(2, 3, 6)], (), "turns heads of 4 features"),
    (Add(), [(2, 5)], (), "takes at least 2 inputs, got 1"),
    (Add(), [(2, 5), (2, 6)], (), "unlike shapes [2, 5] and [2, 6]"),
    (Concat(), [(2, 5), (3, 5)], (), "differ elsewhere: [2, 5], [3, 5]"),
    (Concat(), [], (), "at least 1 input"),
    (Pad(before=(0,), after=(0, 1)), [(2, 5)], (), "1 and 2 paddings for an input [2, 5]"),
    (Reshape(), [(2, 5)], (3, 3), "cannot turn [2, 5] into [3, 3]: 10 and 9 values"),
    (Transpose(order=(0, 0)), [(2, 5)], (), "does not name each dimension of [2, 5] once"),
    (Upsample(), [IMAGE], (2, 4, 3, 12), "cannot enlarge [2, 4, 6, 6] to [2, 4, 3, 12]"),
    (Upsample(), [IMAGE], (2, 4), "has no place for a height"),
    (ConvTranspose2d(kernel=(2, 2), pad=(9, 9)), [IMAGE], (2, 3), "leaves nothing of its output"),
    (Scale(axis=4), [IMAGE], (), "has axis 4"),
    (RmsNorm(axis=2), [(2, 5)], (), "has axis 2"),
    (Gru(hidden=4), [(2, 5)], (), "[T, N, features], got [2, 5]"),
    (Slice(axis=1, start=3, stop=9), [(2, 8)], (), "takes 3 to 9 along axis 1 of [2, 8]"),
    (Lstm(hidden=4), [(2, 5)], (), "[T, N, features], got [2, 5]"),
    (Lstm(hidden=4, skip_input=True), [(3, 2, 5)], (), "adds its input to a state of 4, got 5 features"),
    (LstmCell(hidden=4), [(2, 5), (2, 3, 4)], (), "state [2, N, 4], got [2, 5] and [2, 3, 4]"),
    (Attention(heads=3), [(2, 3, 8)] * 3, (), "do not divide [2, 3, 8]"),
    (Attention(heads=2), [(2, 3, 8), (2, 4, 8), (2, 5, 8)], (), "needs keys and values [2, 4, 8]"),
    (Attention(heads=2, causal=True), [(2, 3, 8), (2, 2, 8), (2, 2, 8)], (), "3 queries but only 2 keys"),
    (Attention(heads=2, window=2), [(2, 3, 8)] * 3, (), "window of 2 keys before each query, which needs it to be causal"),
    (GroupNorm(groups=3), [IMAGE], (), "3 groups, which do not divide the 4 channels of [2, 4, 6, 6]"),
    (ElementWise(function="mod"), [(2, 5), (3,)], (), "unlike shapes [2, 5] and [3]"),
    (Reduce(function="max", axes=(2,)), [(2, 5)], (), "has axis 2"),
    (Gather(), [], (3,), "takes at least 1 input, got 0"),
    (Traffic(operator="my.Op"), [], (3,), "takes at least 1 input, got 0"),
    (Stated(operator="my.Op", moves=1), [], (3,), "takes at least 1 input, got 0"),
    (Update(count=3), [(4,)], (), "updates 3 values from 4 gradients"),
]


@each(("kind", "inputs", "recorded", "sentence"), WRONG)
def test_inputs_that_do_not_fit_are_refused_with_a_sentence(kind, inputs, recorded, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        kind.shape(inputs, recorded)


def test_gradients_of_a_convolution_cost_what_it_does_and_the_filter_adds_the_bias_sum():
    kind, inputs, out = Conv2d(kernel=(3, 3)), [IMAGE], (2, 8, 4, 4)
    assert kind.gradient_macs(BACKWARD_DATA, inputs, out) == kind.gradient_macs(BACKWARD_FILTER, inputs, out) == 9216
    assert kind.gradient_flop(BACKWARD_DATA, inputs, out) == 2 * 9216
    assert kind.gradient_flop(BACKWARD_FILTER, inputs, out) == 2 * 9216 + 256


def test_a_first_layer_has_no_data_gradient():
    kind, inputs, out = Linear(), [(5, 7)], (5, 3)
    assert kind.gradients(inputs, out, [False]) == (BACKWARD_FILTER,)
    assert kind.gradients(inputs, out, [True]) == (BACKWARD_DATA, BACKWARD_FILTER)


def test_each_operand_of_a_matmul_has_its_own_gradient():
    kind, inputs, out = Matmul(), [(2, 3, 4), (2, 4, 5)], (2, 3, 5)
    assert kind.gradients(inputs, out, [True, True]) == (BACKWARD_DATA, BACKWARD_FILTER)
    assert kind.gradients(inputs, out, [False, True]) == (BACKWARD_FILTER,)
    assert kind.gradient_of(1) == BACKWARD_FILTER


def test_an_lstm_runs_back_through_time_even_from_raw_data():
    kind, inputs, out = Lstm(hidden=6), [(3, 2, 5)], (3, 2, 6)
    assert kind.gradients(inputs, out, [False]) == (BACKWARD_DATA, BACKWARD_FILTER)
    assert kind.gradient_flop(BACKWARD_DATA, inputs, out) == 2 * 6 * 264 + 36 * 16


def test_the_gradients_of_a_gated_unit_cost_its_products_and_its_gates():
    kind, inputs, out = Gru(hidden=6), [(3, 2, 5)], (3, 2, 6)
    assert kind.gradient_flop(BACKWARD_DATA, inputs, out) == 2 * 36 * 33 + 36 * 17
    assert kind.gradient_flop(BACKWARD_FILTER, inputs, out) == 2 * 36 * 33 + 36 * 3


def test_a_window_leaves_each_query_its_last_keys():
    for queries, keys, window in itertools.product(range(1, 6), range(1, 9), range(10)):
        if keys >= queries:
            seen = sum(min(keys - queries + t, window or keys) for t in range(1, queries + 1))
            assert Attention(heads=1, causal=True, window=window).seen(queries, keys) == seen


def test_attention_has_four_products_backward():
    kind, inputs = Attention(heads=2), [(2, 3, 8)] * 3
    assert kind.gradient_macs(BACKWARD, inputs, (2, 3, 8)) == 2 * kind.macs(inputs, (2, 3, 8))


def test_an_add_passes_gradients_on_but_an_accumulation_adds():
    shapes = [(2, 5), (2, 5)]
    assert Add().gradient_flop(BACKWARD, shapes, (2, 5)) == 0
    assert Add(accumulate=True).gradient_flop(BACKWARD, shapes, (2, 5)) == 10


@each("case", CASES)
def test_gradient_counts_are_never_negative(case):
    kind, inputs, _, out, *_ = case
    for phase in kind.gradients(inputs, out, [True] * len(inputs)):
        assert kind.gradient_flop(phase, inputs, out) >= 2 * kind.gradient_macs(phase, inputs, out) >= 0


def test_equal_attributes_make_equal_kinds_and_different_classes_differ():
    assert Conv2d(kernel=(3, 3)) == Conv2d(kernel=(3, 3), groups=1)
    assert len({Relu(), Relu(), Sigmoid(), MaxPool(kernel=(2, 2)), AvgPool(kernel=(2, 2))}) == 4


def test_kinds_are_frozen_and_keyed_by_their_name():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Conv2d(kernel=(3, 3)).groups = 2  # type: ignore[misc]
    assert all(issubclass(kind, Kind) and kind.op == name for name, kind in KINDS.items())
    assert set(OPTIMISERS) == {"accumulate", "sgd", "sgd_momentum", "adam"}
