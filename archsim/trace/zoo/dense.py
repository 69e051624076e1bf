"""Networks of matrix products: fully connected, LSTM language models, Deep Speech; and the six workloads of the first TPU.

The networks themselves were never published. What is: the number of layers of each kind, the weights, the multiply-adds for each
byte of weights and the batch (table 1), that CNN1 is an Inception and CNN0 AlphaGo (its caption), and some sizes in the text:
products of 600 x 600 in LSTM1 (section 7), boards of 19 x 19 as 2888 multiply-adds for each weight at a batch of 8 say of CNN0.
Where nothing says otherwise layers are alike and square.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import isqrt

from archsim.trace.kinds.dense import Linear
from archsim.trace.kinds.normalise import ArgMax, Softmax
from archsim.trace.kinds.pointwise import Add, Relu6, ScaleBy, Sigmoid
from archsim.trace.kinds.sequence import Gru
from archsim.trace.trace import Trace
from archsim.trace.zoo.builder import Builder
from archsim.trace.zoo.early import DLBENCH
from archsim.trace.zoo.inception import INCEPTION_BN, halving_module

GUOLINKE = "G. Ke, deep-learning-benchmarks, github.com/guolinke/deep-learning-benchmarks"
WIDE = 26752  # features in and out of the synthetic networks
# Inferred, not read: with the 26752 features of its scripts the published K40 times would take six times the card's peak.
NARROW_IN, NARROW_OUT = 512, 1000
# name -> (source, values of each layer): synthetic features, MNIST, and five and eight layers of values
LAYERS = {
    "fcn_s": (f"{DLBENCH}, synthetic/experiments/torch/fc", (WIDE, 2048, 2048, 2048, WIDE)),
    "fcn_r": (f"{DLBENCH}, tools/torch/Models/ffn5", (784, 2048, 4096, 1024, 10)),
    "fcn_5": (GUOLINKE, (NARROW_IN, 2048, 2048, 2048, NARROW_OUT)),
    "fcn_8": (GUOLINKE, (NARROW_IN, *[2048] * 6, NARROW_OUT)),
}


def fcn_s_tensorflow() -> Trace:
    """`fcn_s` as TensorFlow's script has it: labels with a value for each class, a loss of single ops, predictions counted.

    The script draws weights between -0.5 and 0.5 and features with a variance of 1, so that the sums of the first layer have a
    standard deviation of 47 and their sigmoids end at 0 or 1. Computed in fp32 with these distributions, 3.3 % of the values of
    that layer's gradient are subnormal.
    """
    source = f"{DLBENCH}, synthetic/experiments/tensorflow/fc/ffn26752.py"
    net = Builder("fcn_s@tensorflow", source, {"data": ("N", WIDE), "labels": ("N", WIDE)})
    logits = _hidden(net, [2048, 2048, 2048, WIDE], subnormal=0.033)
    net.add(Softmax(apart=True), logits, name="prob")
    outputs = ["prob", *[net.add(ArgMax(), x, name=f"{x}.argmax") for x in (logits, "labels")]]
    return net.trace(outputs=outputs)


def fcn_r_cntk() -> Trace:
    """`fcn_r` as CNTK's script has it: the widest layer first, and features divided by 256."""
    net = Builder("fcn_r@cntk", f"{DLBENCH}, tools/cntk/fc/fcn5.cntk", {"data": ("N", 784)})
    net.softmax(_hidden(net, [4096, 2048, 1024, 10], net.add(ScaleBy(factor=1 / 256), "data", name="scaled")))
    return net.trace()


def fcn(name: str) -> Trace:
    """The network of one row of `LAYERS`."""
    source, features = LAYERS[name]
    net = Builder(name, source, {"data": ("N", features[0])})
    net.softmax(_hidden(net, features[1:]))
    return net.trace()


def _hidden(net: Builder, features: Sequence[int], x: str = "data", subnormal: float = 0.0) -> str:
    """The layers from `x` to the logits; `subnormal`: of the gradient of the first one."""
    for number, size in enumerate(features, 1):
        kind = Linear(subnormal=subnormal if number == 1 else 0.0)
        x = net.add(kind, x, name=f"fc{number}", recorded=(size,))
        x = net.add(Sigmoid(), x, name=f"sigmoid{number}") if number < len(features) else x
    return x


VOCABULARY = 10000
FEATURES = 256
LSTM_LAYERS = 2


# name -> (source, steps of a sequence)
LSTM = {"lstm_ptb": (f"{DLBENCH}, tools/tensorflow/rnn/lstm", 32), "lstm_32": (GUOLINKE, 32), "lstm_64": (GUOLINKE, 64)}


def lstm(name: str) -> Trace:
    """The language model of one row of `LSTM`."""
    source, steps = LSTM[name]
    net = Builder(name, source, {"tokens": (steps, "N")}, notes=f"N sequences of {steps} tokens")
    x = net.embedding("tokens", VOCABULARY, FEATURES, name="embedding")
    x = net.lstm(x, FEATURES, LSTM_LAYERS, name="lstm")
    x = net.reshape(x, (f"{steps}*N", FEATURES), name="rows")
    return net.classified(x, VOCABULARY, name="decoder")


AMODEI = "D. Amodei et al., Deep Speech 2: End-to-End Speech Recognition in English and Mandarin, arXiv:1512.02595, section 3"
PYTORCH = "github.com/SeanNaren/deepspeech.pytorch, model.py: 5 layers of 800 units"
FRAMES, BANDS = 1000, 161  # 10 s in steps of 10 ms; windows of 20 ms at 16 kHz
HIDDEN, SPEECH_LAYERS, LETTERS = 800, 5, 29


def deepspeech_2() -> Trace:
    """Two convolutions over frequency and time, five layers of gated units whose directions are added, letters at each step."""
    net = Builder("deepspeech_2", f"{AMODEI}; {PYTORCH}", {"data": ("N", 1, BANDS, FRAMES)},
                  notes="10 s of speech; the rectifier that stops at 20 counts as one that stops at 6")  # fmt: skip
    x = net.conv_bn("data", 32, (41, 11), 2, (20, 5), bias=True, name="conv1")
    x = net.activate(x, Relu6(), name="conv1")
    x = net.activate(net.conv_bn(x, 32, (21, 11), (2, 1), (10, 5), bias=True, name="conv2"), Relu6(), name="conv2")
    _, channels, bands, steps = net.shape(x)
    x = net.reshape(x, ("N", channels * bands, steps), name="features")
    x = net.transpose(x, 2, 0, 1, name="steps")
    for layer in range(1, SPEECH_LAYERS + 1):
        x = _both_ways(net, x if layer == 1 else _normalised(net, x, steps, f"rnn{layer}"), f"rnn{layer}")
    x = net.reshape(x, (f"{steps}*N", HIDDEN), name="rows")
    x = net.linear(net.batch_norm(x, name="letters.bn"), LETTERS, bias=False, name="letters")
    net.softmax(x)
    return net.trace(aliases=("deepspeech2", "ds2"))


def _both_ways(net: Builder, x: str, name: str) -> str:
    """The sum of both directions."""
    y = net.add(Gru(hidden=HIDDEN, biases=2, bidirectional=True), x, name=name)
    halves = (net.part(y, start, start + HIDDEN, 2, name=f"{name}.{way}") for way, start in (("forth", 0), ("back", HIDDEN)))
    return net.add(Add(), *halves, name=f"{name}.add")


def _normalised(net: Builder, x: str, steps: int, name: str) -> str:
    """Batch normalisation over samples and steps together (equation 12 of the paper)."""
    y = net.batch_norm(net.reshape(x, (f"{steps}*N", HIDDEN), name=f"{name}.rows"), name=f"{name}.bn")
    return net.reshape(y, (steps, "N", HIDDEN), name=f"{name}.sequence")


# --------------------------------------------------------------------------------------- the workloads of the first TPU

SOURCE = "made from Jouppi et al., In-Datacenter Performance Analysis of a TPU (ISCA 2017), table 1: weights, layers and batch"
BATCHES = {"mlp0": 200, "mlp1": 168, "lstm0": 64, "lstm1": 96, "cnn0": 8, "cnn1": 32}  # of table 1

# CNN1: (channels, side of the filter, stride, padding) of the stem; side of the image; width of the four last layers
STEM = (32, 3, 2, 0), (32, 3, 1, 0), (64, 3, 1, 1), (64, 1, 1, 0), (80, 3, 1, 1), (192, 3, 1, 1)
SIDE, LAST = 337, 5299


def _batch(name: str) -> str:
    return f"batch {BATCHES[name.removeprefix('jouppi_')]}"


def _dense(name: str, layers: int, weights: float) -> Trace:
    """Fully connected layers with ReLU, alike and square."""
    size = isqrt(round(weights / layers))
    net = Builder(name, SOURCE, {"data": ("N", size)}, notes=f"{_batch(name)}; layers alike and square")
    x = "data"
    for i in range(layers):
        x = net.relu(net.linear(x, size, bias=False, name=f"fc{i + 1}"))
    return net.trace()


def _recurrent(name: str, layers: int, vectors: int, size: int, products: int) -> Trace:
    """Products of [N, size] with weights [size, size], `layers` of them, or of `products` that are dealt to the layers.

    The element-wise layers are sigmoids behind products, and products of gates where there are more.
    """
    net = Builder(name, SOURCE, {"data": ("N", size)}, notes=f"{_batch(name)}; one step of the recurrence")
    x = "data"
    for i in range(layers):
        gates = products * (i + 1) // layers - products * i // layers
        results = [net.linear(x, size, bias=False, name=f"fc{i + 1}.{gate + 1}") for gate in range(gates)]
        x = results[0] if gates == 1 else net.sum(*results, name=f"fc{i + 1}")
        if i < vectors:
            x = net.add(Sigmoid(), x, name=f"vector{i + 1}")
        if i < vectors - layers:
            x = net.product(x, x, name=f"vector{layers + i + 1}")
    return net.trace()


def _board() -> Trace:
    """Sixteen convolutions of 3 x 3 over 19 x 19 points with ReLU: 8 million weights, alike."""
    width = isqrt(round(8e6 / 16 / 9))
    notes = f"{_batch('jouppi_cnn0')}; boards of 19 x 19 are inferred from 2888 = 8 x 361"
    net = Builder("jouppi_cnn0", SOURCE, {"data": ("N", width, 19, 19)}, notes=notes)
    x = "data"
    for i in range(16):
        x = net.relu(net.conv(x, width, 3, pad=1, bias=False, name=f"conv{i + 1}"))
    return net.trace()


def _inception() -> Trace:
    """72 convolutions, 13 poolings and four fully connected layers: an Inception, which is what the paper calls it.

    The ten modules of Inception-BN have 66 of the convolutions and ten of the poolings, with their published widths. A stem of
    six convolutions and two poolings, as the versions after it have, and the pooling of the whole image make up the numbers of
    table 1. 1750 multiply-adds for each weight at a batch of 32 then say the side of the image, and 100 million weights the four
    layers, which are alike but for the inputs of the first. Widths are the published ones;
    what other widths and stems would do to the time was looked at (manual, page tpu).
    """
    notes = f"{_batch('jouppi_cnn1')}; modules of Inception-BN; side and the last layers follow from table 1"
    net = Builder(
        "jouppi_cnn1", f"{SOURCE}; the caption of table 1: one CNN is Inception", {"data": ("N", 3, SIDE, SIDE)}, notes=notes
    )
    x = "data"
    for number, (channels, kernel, stride, pad) in enumerate(STEM, 1):
        x = _conv(net, x, channels, kernel, stride, pad, name=f"conv{number}")
        if number in (3, 6):
            x = net.max_pool(x, 3, 2, name=f"pool{number // 3}")
    for name, widths in INCEPTION_BN.items():
        x = halving_module(net, x, widths, f"inception_{name}", _conv)
    x = net.flatten(net.global_avg_pool(x, name="pool13"))
    for i in range(4):
        x = net.relu(net.linear(x, LAST, bias=False, name=f"fc{i + 1}"))
    return net.trace()


def _conv(net: Builder, x: str, channels: int, kernel: int, stride: int = 1, pad: int | None = None, *, name: str) -> str:
    pad = kernel // 2 if pad is None else pad
    return net.relu(net.conv(x, channels, kernel, stride, pad, bias=False, name=name))


WORKLOADS: dict[str, Callable[[], Trace]] = {
    "mlp0": partial(_dense, "jouppi_mlp0", 5, 20e6),
    "mlp1": partial(_dense, "jouppi_mlp1", 4, 5e6),
    "lstm0": partial(_recurrent, "jouppi_lstm0", 24, 34, 1472, 24),
    "lstm1": partial(_recurrent, "jouppi_lstm1", 37, 19, 600, 94),
    "cnn0": _board,
    "cnn1": _inception,
}
