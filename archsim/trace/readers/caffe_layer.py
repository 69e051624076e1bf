"""One layer of a Caffe network: its parameters, and the tensors that it reads and makes."""

from __future__ import annotations

from typing import Any

from archsim.base.errors import InputError
from archsim.trace.dims import LARGEST, Shape, short, show
from archsim.trace.kind import Kind
from archsim.trace.readers.draft import Draft
from archsim.trace.readers.prototxt import Message

# layers of files from before 2014, by their old names, and the names of forks
OLD = {
    "CONVOLUTION": "Convolution", "POOLING": "Pooling", "INNER_PRODUCT": "InnerProduct", "RELU": "ReLU", "LRN": "LRN",
    "DROPOUT": "Dropout", "CONCAT": "Concat", "SOFTMAX": "Softmax", "SPLIT": "Split", "DATA": "Data", "FLATTEN": "Flatten",
    "ELTWISE": "Eltwise", "SIGMOID": "Sigmoid", "TANH": "TanH", "SLICE": "Slice", "DECONVOLUTION": "Deconvolution",
    "POWER": "Power", "ABSVAL": "AbsVal", "SOFTMAX_LOSS": "SoftmaxWithLoss", "ACCURACY": "Accuracy", "MVN": "MVN",
    "EUCLIDEAN_LOSS": "EuclideanLoss", "BNLL": "BNLL", "EXP": "Exp", "IMAGE_DATA": "ImageData", "MEMORY_DATA": "MemoryData",
    "HDF5_DATA": "HDF5Data", "DUMMY_DATA": "DummyData", "ConvolutionDepthwise": "DepthwiseConvolution",
}  # fmt: skip


class CaffeTensors:
    """The ops and tensors of a network while its layers are read one by one."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.draft = Draft(path)
        self.tensors: dict[str, str] = {}


class CaffeLayer:
    """One layer while it becomes ops: its parameters, and the tensors that it reads and makes."""

    def __init__(self, net: CaffeTensors, message: Message, number: int) -> None:
        self.net, self.message = net, message
        self.name = str(first(message, "name", f"layer{number}"))
        kind = str(first(message, "type", ""))
        self.kind = OLD.get(kind, kind)
        self.bottoms = [str(each) for each in message.get("bottom", [])]
        self.tops = [str(each) for each in message.get("top", [])]

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

    def pair(self, parameters: Message, name: str, short_name: str, default: int, least: int) -> tuple[int, int]:
        """A number for height and one for width: `kernel_size`, given once or twice, or `kernel_h` and `kernel_w`."""
        listed = parameters.get(name, [])
        both = [self.whole({name: [each]}, name, default, least) for each in listed][:2]
        if both:
            return both[0], both[-1]
        h, w = (self.whole(parameters, f"{short_name}_{side}", default, least) for side in "hw")
        return h, w

    def refused(self, problem: str) -> InputError:
        """The error for this layer."""
        return InputError(self.net.path, f"layer {short(self.name)} ({self.kind}) {problem}")

    def tensor(self, i: int = 0) -> str:
        """Input i in the trace."""
        if i >= len(self.bottoms):
            raise self.refused(f"has {len(self.bottoms)} inputs, and needs {i + 1}")
        if self.bottoms[i] not in self.net.tensors:
            raise self.refused(f"reads {short(self.bottoms[i])}, which nothing makes before it")
        return self.net.tensors[self.bottoms[i]]

    def shape(self, i: int = 0) -> Shape:
        """The shape of input i."""
        return self.net.draft.shapes[self.tensor(i)]

    def maker(self) -> Kind | None:
        """The kind of op that made input 0; None for an input of the network."""
        name = self.tensor()
        return next((op.kind for op in reversed(self.net.draft.ops) if op.name == name), None)

    def image(self) -> tuple[int, int, int, int]:
        """The shape of an input [N, C, H, W]."""
        shape = self.shape()
        if len(shape) != 4:
            raise self.refused(f"needs an input of the form [N, C, H, W], got {show(shape)}")
        n, c, h, w = shape
        return n, c, h, w

    def axis(self, parameters: Message, default: int = 1) -> int:
        """An axis from the front."""
        found = first(parameters, "axis", default)
        rank = len(self.shape())
        if isinstance(found, bool) or not isinstance(found, int) or not -rank <= found < rank:
            raise self.refused(f"has axis {short(found)}, but its input is {show(self.shape())}")
        return found % rank

    def add(self, kind: Kind, *inputs: str, shape: Shape, part: str = "", top: int = 0) -> str:
        """An op that makes a result, or a part on the way."""
        name = self.net.draft.add(kind, inputs or (self.tensor(),), shape, f"{self.name}/{part}" if part else self.name)
        if not part and top < len(self.tops):
            self.net.tensors[self.tops[top]] = name
        return name

    def end(self, tensor: str, top: int = 0) -> None:
        """A tensor of the trace as a result."""
        if top < len(self.tops):
            self.net.tensors[self.tops[top]] = tensor


def first(message: Message, name: str, default: Any) -> Any:
    """A field that is there once, or its default."""
    return message[name][0] if message.get(name) else default
