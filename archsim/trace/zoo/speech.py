"""Deep Speech 2: letters from spectrograms by convolutions and recurrent layers that read both ways."""

from __future__ import annotations

from archsim.trace.kinds.activation import Relu6
from archsim.trace.kinds.pointwise import Add
from archsim.trace.kinds.recurrent import Gru
from archsim.trace.trace import Trace
from archsim.trace.zoo.builder import Builder

AMODEI = "D. Amodei et al., Deep Speech 2: End-to-End Speech Recognition in English and Mandarin, arXiv:1512.02595, section 3"
PYTORCH = "github.com/SeanNaren/deepspeech.pytorch, model.py: 5 layers of 800 units"
FRAMES, BANDS = 1000, 161  # 10 s in steps of 10 ms; windows of 20 ms at 16 kHz
HIDDEN, LAYERS, LETTERS = 800, 5, 29


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
    for layer in range(1, LAYERS + 1):
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
