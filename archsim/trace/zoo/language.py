"""Language models on the Penn Treebank: an embedding, LSTM layers, and a softmax over the whole vocabulary."""

from __future__ import annotations

from archsim.trace.trace import Trace
from archsim.trace.zoo.alexnet import DLBENCH
from archsim.trace.zoo.builder import Builder
from archsim.trace.zoo.dense import GUOLINKE

VOCABULARY = 10000
FEATURES = 256
LAYERS = 2


def lstm_ptb() -> Trace:
    """32 steps."""
    return _language_model("lstm_ptb", f"{DLBENCH}, tools/tensorflow/rnn/lstm", steps=32)


def lstm_32() -> Trace:
    """32 steps."""
    return _language_model("lstm_32", GUOLINKE, steps=32)


def lstm_64() -> Trace:
    """64 steps."""
    return _language_model("lstm_64", GUOLINKE, steps=64)


def _language_model(name: str, source: str, steps: int) -> Trace:
    net = Builder(name, source, {"tokens": (steps, "N")}, notes=f"N sequences of {steps} tokens")
    x = net.embedding("tokens", VOCABULARY, FEATURES, name="embedding")
    x = net.lstm(x, FEATURES, LAYERS, name="lstm")
    x = net.reshape(x, (f"{steps}*N", FEATURES), name="rows")
    net.softmax(net.linear(x, VOCABULARY, name="decoder"))
    return net.trace()
