"""Layers of a Caffe network: the text of its prototxt, and of a layer the parameters, the tensors that it reads and its nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from archsim.base.errors import InputError
from archsim.base.files import LIMITS
from archsim.trace.dims import LARGEST, Shape, short, show
from archsim.trace.readers.model import Call, KnownTensor, ModelNode, Refusal, StoredTensor, constant
from archsim.trace.readers.shapes import shapes_of

LIMIT = LIMITS["prototxt"]
TOKEN = re.compile(r"""\s+|\#[^\n]*|(?P<word>[A-Za-z_][\w.\[\]/-]*)|(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?f?)
                       |(?P<text>"(?:[^"\\\n]++|\\.)*+"|'(?:[^'\\\n]++|\\.)*+')
                       |(?P<mark>[{}:<>;,\[\]])""", re.VERBOSE)  # fmt: skip
LONGEST_NUMBER = 40

Message = dict[str, list[Any]]


def parsed(text: str, path: str) -> Message:
    """The message of a text. Raises InputError with the line."""
    return _Reader(text, path).message(0, top=True)


class _Reader:
    """Tokens, one after the other."""

    def __init__(self, text: str, path: str) -> None:
        self.text, self.path, self.at, self.count = text, path, 0, 0
        self.tokens = self._tokens()
        self.now = next(self.tokens)

    def _tokens(self) -> Iterator[tuple[str, str]]:
        while self.at < len(self.text):
            found = TOKEN.match(self.text, self.at)
            if found is None:
                raise self._error(f"is no text of a protobuf message: {short(self.text[self.at : self.at + 20])}")
            if found.lastgroup:
                yield found.lastgroup, found[0]
            self.at = found.end()
        yield "end", ""

    def _error(self, problem: str) -> InputError:
        return InputError(self.path, f"line {self.text.count(chr(10), 0, self.at) + 1}: {problem}")

    def _next(self) -> tuple[str, str]:
        held, self.now = self.now, next(self.tokens, ("end", ""))
        return held

    def message(self, depth: int, top: bool = False) -> Message:
        """Fields up to the closing brace, or the end."""
        if depth > LIMIT.depth:
            raise self._error(f"is nested more than {LIMIT.depth} deep")
        found: Message = {}
        while True:
            kind, word = self._next()
            if (kind == "end" and top) or (word in ("}", ">") and kind == "mark" and not top):
                return found
            if word in (";", ","):
                continue
            if kind != "word":
                raise self._error(f"has {short(word) if word else 'an end'} where the name of a field should be")
            self.count += 1
            if self.count > LIMIT.entries:
                raise self._error(f"has more than {LIMIT.entries} fields; refused")
            found.setdefault(word, []).extend(self._values(depth))

    def _values(self, depth: int) -> list[Any]:
        if self.now == ("mark", ":"):
            self._next()
        if self.now[1] in ("{", "<") and self.now[0] == "mark":
            self._next()
            return [self.message(depth + 1)]
        if self.now == ("mark", "["):
            self._next()
            found = []
            while self.now != ("mark", "]"):
                if self.now != ("mark", ","):
                    found.append(self._value())
                else:
                    self._next()
            self._next()
            return found
        return [self._value()]

    def _value(self) -> Any:
        kind, word = self._next()
        if kind == "number":
            if len(word) > LONGEST_NUMBER:
                raise self._error(f"has a number of {len(word)} digits")
            plain = word.rstrip("f")
            return int(plain) if re.fullmatch(r"[-+]?\d+", plain) else float(plain)
        if kind == "text":
            return word[1:-1]
        if kind == "word":
            return {"true": True, "false": False}.get(word, word)
        raise self._error(f"has {short(word) if word else 'an end'} where a value should be")


# --------------------------------------------------------------------------------------------------------------- layers

# layers of files from before 2014, by their old names, and the names of forks
OLD = {
    "CONVOLUTION": "Convolution", "POOLING": "Pooling", "INNER_PRODUCT": "InnerProduct", "RELU": "ReLU", "LRN": "LRN",
    "DROPOUT": "Dropout", "CONCAT": "Concat", "SOFTMAX": "Softmax", "SPLIT": "Split", "DATA": "Data", "FLATTEN": "Flatten",
    "ELTWISE": "Eltwise", "SIGMOID": "Sigmoid", "TANH": "TanH", "SLICE": "Slice", "DECONVOLUTION": "Deconvolution",
    "POWER": "Power", "ABSVAL": "AbsVal", "SOFTMAX_LOSS": "SoftmaxWithLoss", "ACCURACY": "Accuracy", "MVN": "MVN",
    "EUCLIDEAN_LOSS": "EuclideanLoss", "BNLL": "BNLL", "EXP": "Exp", "IMAGE_DATA": "ImageData", "MEMORY_DATA": "MemoryData",
    "HDF5_DATA": "HDF5Data", "DUMMY_DATA": "DummyData", "ConvolutionDepthwise": "DepthwiseConvolution",
}  # fmt: skip
OPSET = 17


class CaffeTensors:
    """The nodes and tensors of a network while its layers are read one by one; `tensors` are those of the tops of today."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.nodes: list[ModelNode] = []
        self.inputs: dict[str, Shape] = {}
        self.constants: dict[str, StoredTensor] = {}
        self.known: dict[str, KnownTensor] = {}
        self.tensors: dict[str, str] = {}

    def free(self, wanted: str) -> str:
        """A name that no tensor has."""
        name, number = wanted, 1
        while name in self.known:
            number += 1
            name = f"{wanted}.{number}"
        return name


class CaffeLayer:
    """One layer while it becomes nodes."""

    def __init__(self, net: CaffeTensors, message: Message, number: int) -> None:
        self.net, self.message = net, message
        self.name = str(first(message, "name", f"layer{number}"))
        kind = str(first(message, "type", ""))
        self.kind = OLD.get(kind, kind)
        self.bottoms = [str(each) for each in message.get("bottom", [])]
        self.tops = [str(each) for each in message.get("top", [])]
        self.learned = 0

    def parameters(self, name: str) -> Message:
        """The parameters of a kind of layer; empty where there are none."""
        found = first(self.message, name, {})
        return found if isinstance(found, dict) else {}

    def whole(self, parameters: Message, name: str, default: int, least: int = 0) -> int:
        """A whole number among the parameters."""
        found = first(parameters, name, default)
        if isinstance(found, bool) or not isinstance(found, int) or not least <= found <= LARGEST:
            raise self.refused(f"has {name} {short(found)}, which is no whole number from {least} on")
        return found

    def pair(self, parameters: Message, name: str, short_name: str, default: int, least: int) -> list[int]:
        """A number for height and one for width: `kernel_size`, given once or twice, or `kernel_h` and `kernel_w`."""
        both = [self.whole({name: [each]}, name, default, least) for each in parameters.get(name, [])][:2]
        return [both[0], both[-1]] if both else [self.whole(parameters, f"{short_name}_{side}", default, least) for side in "hw"]

    def refused(self, problem: str) -> InputError:
        """The error for this layer."""
        return InputError(self.net.path, f"layer {short(self.name)} ({self.kind}) {problem}")

    def tensor(self, i: int = 0) -> str:
        """Input i."""
        if i >= len(self.bottoms):
            raise self.refused(f"has {len(self.bottoms)} inputs, and needs {i + 1}")
        if self.bottoms[i] not in self.net.tensors:
            raise self.refused(f"reads {short(self.bottoms[i])}, which nothing makes before it")
        return self.net.tensors[self.bottoms[i]]

    def shape(self, i: int = 0) -> Shape:
        """The shape of input i."""
        return self.net.known[self.tensor(i)].shape

    def image(self) -> Shape:
        """The shape of an input [N, C, H, W]."""
        if len(self.shape()) != 4:
            raise self.refused(f"needs an input of the form [N, C, H, W], got {show(self.shape())}")
        return self.shape()

    def axis(self, parameters: Message, default: int = 1) -> int:
        """An axis from the front."""
        found = first(parameters, "axis", default)
        rank = len(self.shape())
        if isinstance(found, bool) or not isinstance(found, int) or not -rank <= found < rank:
            raise self.refused(f"has axis {short(found)}, but its input is {show(self.shape())}")
        return found % rank

    def held(self, *shape: int) -> str:
        """The next learned tensor of the layer. One that a file names belongs to all layers that name it."""
        named = [str(first(each, "name", "")) if isinstance(each, dict) else str(each) for each in self.message.get("param", [])]
        shared = named[self.learned] if self.learned < len(named) else ""
        name = f"param {shared}" if shared else self.net.free(f"{self.name}.{self.learned}")
        self.learned += 1
        stored = self.net.constants.setdefault(name, StoredTensor(shape=shape))
        if stored.shape != shape:
            raise self.refused(f"shares {short(shared)} of {show(stored.shape)}, and needs {show(shape)}")
        self.net.known[name] = constant(stored)
        return name

    def add(
        self, kind: str, *inputs: str, makes: Shape = (), part: str = "", domain: str = "", results: int = 1, **attributes: Any
    ) -> str:
        """A node that makes the results, or a part on the way, of the shape `makes` or its input where no rule tells it."""
        name = f"{self.name}/{part}" if part else self.name
        made = [self.net.free(name if results == 1 else f"{name}.{i}") for i in range(results)]
        node = ModelNode(kind=kind, name=name, inputs=inputs or (self.tensor(),), outputs=tuple(made), attributes=attributes,
                         domain=domain)  # fmt: skip
        try:
            shapes = shapes_of(Call(node=node, inputs=[self.net.known[each] for each in node.inputs], opset=OPSET))
        except Refusal as problem:
            raise self.refused(str(problem)) from None
        for i, tensor in enumerate(made):
            self.net.known[tensor] = KnownTensor(shape=shapes[i] if shapes else makes or self.net.known[node.inputs[0]].shape)
            if not part:
                self.end(tensor, i)
        self.net.nodes.append(node)
        return made[0]

    def view(self, tensor: str, shape: Sequence[int], part: str = "") -> str:
        """A tensor under another shape."""
        return self.add("Reshape", tensor, part=part, shape=list(shape), allowzero=1)

    def end(self, tensor: str, top: int = 0) -> None:
        """A tensor as a result."""
        if top < len(self.tops):
            self.net.tensors[self.tops[top]] = tensor


def first(message: Message, name: str, default: Any) -> Any:
    """A field that is there once, or its default."""
    return message[name][0] if message.get(name) else default
