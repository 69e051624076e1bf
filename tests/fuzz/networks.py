"""Random networks whose shapes are right, of sizes from edges: what a checker lets through must have finite answers."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from archsim.trace.file import dumps
from archsim.trace.kinds.pointwise import Sigmoid
from archsim.trace.zoo.builder import Builder

from . import mutate

SIZES = (1, 1, 2, 3, 5, 7, 8, 13, 16, 31, 32, 33, 56, 64, 65, 127, 128, 224, 256, 513, 1000, 1024, 4096, 4099, 16384, 65536)
WINDOWS = (1, 1, 2, 3, 3, 5, 7, 11, 31)
Step = Callable[[Builder, str, Random, str], str]


def _conv(build: Builder, x: str, random: Random, name: str) -> str:
    channels = random.choice(SIZES)
    groups = random.choice((1, 1, 1, build.channels(x)))
    window, stride = random.choice(WINDOWS), random.choice((1, 1, 2, 4))
    return build.conv(x, channels * groups, window, stride, random.choice((0, window // 2)), groups=groups, name=name)


STEPS: tuple[Step, ...] = (
    _conv, _conv,
    lambda build, x, random, name: build.conv_bn_relu(x, random.choice(SIZES), random.choice(WINDOWS), name=name),
    lambda build, x, random, name: build.linear(x, random.choice(SIZES), bias=random.random() < 0.5, name=name),
    lambda build, x, random, name: build.flatten(x),
    lambda build, x, random, name: build.max_pool(x, random.choice(WINDOWS), random.choice((1, 2, 3)), name=name),
    lambda build, x, random, name: build.avg_pool(x, random.choice(WINDOWS), random.choice((1, 2)), name=name),
    lambda build, x, random, name: build.global_avg_pool(x, name=name),
    lambda build, x, random, name: build.batch_norm(x, name=name), lambda build, x, random, name: build.relu(x, name=name),
    lambda build, x, random, name: build.add(Sigmoid(), x, name=name), lambda build, x, random, name: build.lrn(x, name=name),
    lambda build, x, random, name: build.dropout(x, name=name), lambda build, x, random, name: build.softmax(x, name=name),
    lambda build, x, random, name: build.sum(x, x, name=name), lambda build, x, random, name: build.product(x, x, name=name),
    lambda build, x, random, name: build.concat(x, x, name=name),
    lambda build, x, random, name: build.lstm(x, random.choice(SIZES[:20]), random.choice((1, 2)), name=name),
)  # fmt: skip


def network(random: Random) -> str:
    """The file of a random network, sometimes with a mutation."""
    dims = random.choice((1, 2, 3, 3, 3, 3, 3))
    shape: list[int | str] = [random.choice(("N", "N", "N", 1, 16)), *(random.choice(SIZES[:20]) for _ in range(dims))]
    build = Builder("random", "", {"data": tuple(shape)})
    x, made = "data", 0
    for number in range(random.choice((1, 2, 4, 8, 16))):
        try:
            x = random.choice(STEPS)(build, x, random, f"op{number}")
            made += 1
        except (ValueError, IndexError, KeyError, TypeError):  # the step does not fit the shape
            continue
    if made == 0:
        build.relu("data", name="only")
    text = dumps(build.trace())
    return mutate.json_lines(text, random) if random.random() < 0.1 else text
