"""Networks of Caffe, from the text of their prototxt: the layers of the test phase, with the shapes that Caffe gives them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from archsim.base.errors import InputError, Unsupported
from archsim.base.files import read_text
from archsim.trace.dims import BATCH, LARGEST, short
from archsim.trace.formats import unknown_symbol
from archsim.trace.readers.caffe_layer import OPSET, CaffeLayer, CaffeTensors, first
from archsim.trace.readers.caffe_rules import LAYERS, unknown
from archsim.trace.readers.call import KnownTensor
from archsim.trace.readers.draft import NoProduct
from archsim.trace.readers.model import ModelFile
from archsim.trace.readers.prototxt import LIMIT, Message, parsed
from archsim.trace.readers.read import trace_at_batches
from archsim.trace.trace import Trace

PROBES = (1009, 1013)  # samples at which the layers are read, to see what grows with them
INPUTS = ("Input", "Data", "ImageData", "MemoryData", "HDF5Data", "WindowData", "DummyData")
NOT_AT_TEST = ("SoftmaxWithLoss", "Accuracy", "EuclideanLoss", "HingeLoss", "SigmoidCrossEntropyLoss", "ContrastiveLoss",
               "MultinomialLogisticLoss", "InfogainLoss", "Silence", "Python")  # fmt: skip


class CaffeNet(CaffeTensors):
    """The layers of a file at one number of samples; None: as the file has it."""

    def __init__(self, message: Message, path: str, samples: int | None) -> None:
        super().__init__(path)
        self.message, self.samples = message, samples

    def read(self) -> ModelFile:
        """All layers of the test phase. Raises InputError or Unsupported."""
        self._inputs()
        layers = [*self.message.get("layer", []), *self.message.get("layers", [])]
        for number, message in enumerate(layers, 1):
            if not isinstance(message, dict):
                raise InputError(self.path, f"layer {number} is no layer")
            if at_test(message):
                self._layer(CaffeLayer(self, message, number))
        if not self.nodes:
            raise InputError(self.path, "has no layers that compute anything")
        read = {name for node in self.nodes for name in node.inputs}
        return ModelFile(
            path=self.path, name=str(first(self.message, "name", Path(self.path).stem)), source="Caffe prototxt",
            inputs=self.inputs, constants=self.constants, nodes=tuple(self.nodes), opset=OPSET,
            outputs=tuple([name for node in self.nodes for name in node.outputs if name not in read]),
            hints={name: self.known[name].shape for node in self.nodes for name in node.outputs},
        )  # fmt: skip

    def input(self, name: str, sizes: list[Any]) -> None:
        """An input of these sizes, of which the first is the batch."""
        if not sizes or not all(isinstance(size, int) and not isinstance(size, bool) and 1 <= size <= LARGEST for size in sizes):
            raise InputError(self.path, f"input {short(name)} has the shape {short(sizes)}; a size is a whole number from 1 on")
        made = self.tensors[name] = self.free(name)
        self.inputs[made] = (self.samples or sizes[0], *sizes[1:])
        self.known[made] = KnownTensor(shape=self.inputs[made])

    def _inputs(self) -> None:
        names = [str(name) for name in self.message.get("input", [])]
        shapes = [shape.get("dim", []) for shape in self.message.get("input_shape", []) if isinstance(shape, dict)]
        dims = self.message.get("input_dim", [])
        shapes = shapes or [dims[i : i + 4] for i in range(0, len(dims), 4)]
        if len(shapes) != len(names):
            raise InputError(self.path, f"has {len(names)} inputs and {len(shapes)} shapes of inputs")
        for name, sizes in zip(names, shapes, strict=True):
            self.input(name, sizes)

    def _layer(self, layer: CaffeLayer) -> None:
        if layer.kind in INPUTS:
            return self._data(layer)
        if layer.kind in NOT_AT_TEST:
            if layer.kind == "SoftmaxWithLoss" and len(layer.bottoms) > 1 and layer.tops:
                layer.add("Softmax", axis=1)
            elif layer.kind == "Python":
                raise Unsupported(f"{self.path}: layer {short(layer.name)} runs a script of its author; it is not read")
            return None
        LAYERS.get(layer.kind, unknown)(layer)
        return None

    def _data(self, layer: CaffeLayer) -> None:
        given = layer.parameters("input_param").get("shape", []) + layer.parameters("dummy_data_param").get("shape", [])
        shapes = [shape.get("dim", []) for shape in given if isinstance(shape, dict)]
        if not shapes:
            raise layer.refused("reads a database, which does not say how large its images are: put an Input layer in its place, "
                                "with input_param { shape { dim: 1 dim: 3 dim: 224 dim: 224 } }")  # fmt: skip
        for number, top in enumerate(layer.tops):
            self.input(top, shapes[min(number, len(shapes) - 1)])


def at_test(message: Message) -> bool:
    """Whether a layer is part of the test phase."""
    include, exclude = message.get("include", []), message.get("exclude", [])
    phases = [first(rule, "phase", "") for rule in include if isinstance(rule, dict)]
    left_out = [first(rule, "phase", "") for rule in exclude if isinstance(rule, dict)]
    return not ("TRAIN" in phases and "TEST" not in phases) and "TEST" not in left_out


def read(path: Path, sizes: Mapping[str, int]) -> Trace:
    """The trace of a prototxt, the first size of whose inputs is the batch. Raises InputError, MissingFile or Unsupported."""
    for name in sizes:
        if name not in (BATCH, "batch"):
            raise unknown_symbol(path, name, ("batch",))
    message = parsed(read_text(path, LIMIT.size), str(path))
    try:
        return trace_at_batches([CaffeNet(message, str(path), samples).read() for samples in PROBES], PROBES)
    except NoProduct:
        return trace_at_batches([CaffeNet(message, str(path), None).read()], ())
