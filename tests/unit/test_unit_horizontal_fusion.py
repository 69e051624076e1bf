"""Products of one input that run as one, and what the runs of a network leave in the cache for the next."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from archsim.estimation.request import make_request
from archsim.lower.lower import cache_state, horizontally_fused
from archsim.stack import catalog as stacks
from archsim.trace.op import Conv2d, Linear, Relu
from archsim.trace.trace import BoundOp

ENGINE = stacks.find("tensorrt-8")
IMAGE = (1, 64, 28, 28)


def conv(name: str, channels: int, **words: object) -> BoundOp:
    kind = Conv2d(kernel=(1, 1), bias=False, **words)  # type: ignore[arg-type]
    return BoundOp(name=name, kind=kind, inputs=("x",), input_shapes=(IMAGE,), shape=(1, channels, 28, 28))


def behind(name: str, of: BoundOp) -> BoundOp:
    return BoundOp(name=name, kind=Relu(), inputs=(of.name,), input_shapes=(of.shape,), shape=of.shape)


def linear(name: str, features: int, reads: str = "x") -> BoundOp:
    return BoundOp(name=name, kind=Linear(), inputs=(reads,), input_shapes=((1, 128, 64),), shape=(1, 128, features))


def test_products_of_one_input_are_joined_along_their_results() -> None:
    ops = (linear("q", 64), linear("k", 32), linear("v", 32), linear("other", 64, reads="y"))
    joined, into = horizontally_fused(ops, ENGINE, training=False)
    assert into == {"k": "q", "v": "q"}
    assert (joined[0].shape, joined[1:]) == ((1, 128, 128), ops[1:])


def test_branches_are_joined_only_where_the_same_follows() -> None:
    """The first convolution of a block has an activation behind it, the shortcut beside it has none."""
    one, two, shortcut = conv("one", 16), conv("two", 32), conv("shortcut", 256)
    joined, into = horizontally_fused((one, behind("a", one), two, behind("b", two), shortcut), ENGINE, training=False)
    assert into == {"two": "one"}
    assert joined[0].shape == (1, 48, 28, 28)


@pytest.mark.parametrize("other", [conv("two", 32, stride=(2, 2)), conv("two", 32, pad=(1, 1)), conv("two", 64, groups=64)])
def test_other_windows_and_groups_stay_apart(other: BoundOp) -> None:
    assert not horizontally_fused((conv("one", 16), other), ENGINE, training=False)[1]


def test_a_stack_without_the_rule_and_training_join_nothing() -> None:
    ops = (linear("q", 64), linear("k", 64))
    for stack, training in ((replace(ENGINE, horizontal_fusion=()), False), (ENGINE, True)):
        assert horizontally_fused(ops, stack, training=training) == (ops, {})


def test_an_engine_multiplies_queries_keys_and_values_as_one() -> None:
    """One launch in place of three, the same arithmetic, and the ops that share it are named."""
    from archsim.estimation.pipeline import run

    request = make_request("bert_base", "a100_sxm4_40gb", stack="tensorrt-8", precision="fp16")
    joined, apart = run(request), run(replace(request, stack=replace(ENGINE, horizontal_fusion=())))
    assert joined.lowered.into["block1.key"] == joined.lowered.into["block1.value"] == "block1.query"
    assert joined.latency_s[0] < apart.latency_s[0]
    products = [result.lowered.kernels.flop[result.lowered.kernels.matrix > 0].max() for result in (joined, apart)]
    assert products[0] >= products[1]


def test_a_small_network_leaves_its_parameters_to_the_next_run() -> None:
    """Parameters, and twice the largest result; one op alone, training and stacks that keep results leave no such thing."""
    ops = [linear("one", 64), behind("two", linear("one", 64))]
    left = cache_state(ops, ENGINE, False, 2)
    assert left.run_bytes == 2 * (64 * 64 + 64 + 2 * 128 * 64)
    assert left.short_lived
    assert cache_state(ops, ENGINE, False, 1 << 20).run_bytes == inf
    assert cache_state(ops[:1], ENGINE, False, 2).run_bytes == inf
    assert not cache_state(ops, ENGINE, True, 2).short_lived
    kept = cache_state(ops, replace(ENGINE, activations="kept"), False, 2)
    assert kept.run_bytes == left.run_bytes
    assert not kept.short_lived
