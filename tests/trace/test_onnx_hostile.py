"""ONNX files of strangers: each ends in one line that names the place, soon, and in little memory."""

from __future__ import annotations

import contextlib
import random
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from onnx import ModelProto, TensorProto, helper

import archsim
from archsim.base.errors import ArchsimError, ArgumentError, InputError, MissingFile
from archsim.trace import load
from archsim.trace.readers.wire import LIMIT, MOST_LEFT

from ..each import each
from .onnx_models import hollow, number, onnx_model, small_cnn, whole, written
from .test_onnx_reader import attention_nodes

BIG = 2**62


def conv(x: list[Any], w: tuple[int, ...], **attributes: Any) -> ModelProto:
    return onnx_model([("Conv", "x w", "y", attributes)], {"x": x}, ["y"], [hollow("w", *w)])


def negative_weights() -> ModelProto:
    model = conv([1, 3, 8, 8], (8, 3, 3, 3))
    model.graph.initializer[0].dims[0] = -8
    return model


def cycle() -> ModelProto:
    return onnx_model([("Relu", "x", "a"), ("Add", "a c", "b"), ("Relu", "b", "c")], {"x": [1, 4]}, ["c"])


def without_graph() -> ModelProto:
    return ModelProto(ir_version=8)


def nested() -> ModelProto:
    model = small_cnn()
    graph = model.graph
    for _ in range(60):
        node = graph.node.add(op_type="If", name="deep", input=["x"], output=["deep"])
        attribute = node.attribute.add(name="then_branch", type=5)
        graph = attribute.g
    return model


MODELS: dict[str, tuple[Callable[[], ModelProto], str]] = {
    "a negative size": (lambda: conv([1, 3, -8, 8], (8, 3, 3, 3)), r"input 'x' has the dimension -8"),
    "a size of none": (lambda: conv([1, 3, 0, 8], (8, 3, 3, 3)), r"input 'x' has the dimension 0"),
    "a size of 2^62": (lambda: conv([1, 3, BIG, 8], (8, 3, 3, 3)), rf"input 'x' has the dimension {BIG}"),
    "sizes whose product is too large": (
        lambda: onnx_model([("Relu", "x", "y")], {"x": [2**30, 2**30]}, ["y"]),
        r"makes 'y' of the shape .* which no tensor has",
    ),
    "negative weights": (negative_weights, r"constant 'w' has the shape \[-8, 3, 3, 3\]"),
    "channels that do not fit": (
        lambda: conv([1, 3, 8, 8], (8, 4, 3, 3)),
        r"'n0' \(Conv\) has weights \[8, 4, 3, 3\] in 1 groups",
    ),
    "a stride of 0": (lambda: conv([1, 3, 8, 8], (8, 3, 3, 3), strides=[0, 1]), r"'n0' \(Conv\) has strides \[0, 1\]"),
    "a window larger than its image": (lambda: conv([1, 3, 2, 8], (8, 3, 3, 3)), "has a window of 3, too large for an input"),
    "negative padding": (lambda: conv([1, 3, 8, 8], (8, 3, 3, 3), pads=[-1, 0, 0, 0]), r"has pads \[-1, 0, 0, 0\]"),
    "no groups": (lambda: conv([1, 3, 8, 8], (8, 3, 3, 3), group=0), "in 0 groups"),
    "a dangling input": (
        lambda: onnx_model([("Relu", "xx", "y")], {"x": [1, 4]}, ["y"]),
        "'n0' .Relu. reads 'xx', which nothing makes; nearest: 'x'",
    ),
    "an output of nothing": (
        lambda: onnx_model([("Relu", "x", "y")], {"x": [1, 4]}, ["z"]),
        "output is 'z', which nothing makes",
    ),
    "one name twice": (
        lambda: onnx_model([("Relu", "x", "y"), ("Relu", "x", "y")], {"x": [1, 4]}, ["y"]),
        "makes 'y', which the result of node",
    ),
    "a cycle": (cycle, "has a cycle: 'n[12]' -> 'n[12]' -> 'n[12]'"),
    "a slope that is no number": (
        lambda: onnx_model([("LeakyRelu", "x", "y", {"alpha": float("nan")})], {"x": [1, 4]}, ["y"]),
        "'alpha', which is not a finite",
    ),
    "no graph": (without_graph, "has no graph with nodes"),
    "graphs in graphs": (nested, "is nested more than 32 deep"),
    "a product of other sizes": (
        lambda: onnx_model([("MatMul", "x w", "y")], {"x": [4, 5]}, ["y"], [hollow("w", 6, 7)]),
        "inner dimensions are 5 and 6",
    ),
    "a shape that holds other values": (
        lambda: onnx_model([("Reshape", "x s", "y")], {"x": [4, 5]}, ["y"], [whole("s", 3, -1)]),
        "20 values do not divide by 3",
    ),
    "a reshape to nothing": (
        lambda: onnx_model([("Reshape", "x s", "y")], {"x": [4, 5]}, ["y"], [whole("s", 0, -2)]),
        "which no tensor has",
    ),
    "an expansion without end": (
        lambda: onnx_model([("Expand", "x s", "y")], {"x": [1, 1]}, ["y"], [whole("s", BIG, BIG)]),
        "which no tensor has",
    ),
    "a range without end": (
        lambda: onnx_model(
            [("Range", "a b c", "r"), ("Add", "x r", "y")], {"x": [1]}, ["y"], [whole("a", 0), whole("b", BIG), whole("c", 1)]
        ),
        "which no tensor has",
    ),
    "a step of nothing": (
        lambda: onnx_model(
            [("Slice", "x a b c d", "y")], {"x": [4]}, ["y"], [whole("a", 0), whole("b", 4), whole("c", 0), whole("d", 0)]
        ),
        "axes or steps",
    ),
    "an operator that nobody knows": (
        lambda: onnx_model([("my.Odd", "x", "y")], {"x": [4]}, ["y"]),
        r"\(my.Odd\) is not known here, .* archsim.register_op\('my.Odd'",
    ),
    "an opset of the future": (lambda: onnx_model([("Relu", "x", "y")], {"x": [4]}, ["y"], opset=999), "uses version 999"),
    "too many dimensions": (lambda: onnx_model([("Relu", "x", "y")], {"x": [1] * 20}, ["y"]), "has 20 dimensions"),
}


@each(("what", "made", "words"), [(what, *rest) for what, rest in MODELS.items()])
def test_a_model_that_cannot_be_is_refused_in_one_line(tmp_path: Path, what: str, made: Callable[[], ModelProto], words: str):
    with pytest.raises(InputError, match=words) as caught:
        load(written(made(), tmp_path))
    assert "\n" not in str(caught.value)


def test_weights_in_other_files_are_never_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = written(small_cnn(), tmp_path)
    opened: list[object] = []
    real = Path.open
    monkeypatch.setattr(Path, "open", lambda self, *rest, **more: opened.append(self) or real(self, *rest, **more))  # type: ignore[func-returns-value]
    load(path)
    assert {str(place) for place in opened} == {path}


def many_nodes(count: int) -> bytes:
    """A graph of as many nodes without anything in them, which takes three bytes each."""
    graph = b"\x0a\x01\x0a" * 0 + b"".join([b"\x0a\x00"] * count)
    length = len(graph)
    coded = bytearray()
    while length > 127:
        coded.append(length & 127 | 128)
        length >>= 7
    coded.append(length)
    return b"\x08\x08\x3a" + bytes(coded) + graph


@each(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b"\x00", "is no ONNX model"),
        (b"hello, this is text", "is no ONNX model"),
        (b"\x3a\xff\xff\xff\xff\x0f", "is cut off"),
        (b"\xff" * 64, "is no ONNX model"),
        (b"\x08" + b"\x80" * 20, "is no ONNX model"),
        (many_nodes(1_000_000), f"has more than {LIMIT.entries} nodes; refused"),
        (small_cnn().SerializeToString()[:-40], "is cut off"),
    ],
)
def test_bytes_that_are_no_model_are_refused(tmp_path: Path, data: bytes, words: str):
    place = tmp_path / "bad.onnx"
    place.write_bytes(data)
    with pytest.raises(InputError, match=words):
        load(str(place))


def test_random_bytes_end_in_a_refusal(tmp_path: Path):
    chance, place, whole_model = random.Random(7), tmp_path / "noise.onnx", bytearray(small_cnn().SerializeToString())
    for _ in range(300):
        data = bytearray(chance.randbytes(chance.randrange(1, 400))) if chance.random() < 0.3 else whole_model[:]
        for _ in range(chance.randrange(1, 8)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        place.write_bytes(data)
        with contextlib.suppress(ArchsimError, ValueError):  # nothing else
            load(str(place)).bind(**dict.fromkeys(load(str(place)).free_symbols, 2))


def test_a_model_with_large_weights_is_read_in_little_memory(tmp_path: Path):
    model = small_cnn()
    for tensor in model.graph.initializer:
        if tensor.name == "fw":
            tensor.ClearField("external_data")
            tensor.data_location = TensorProto.DEFAULT
            tensor.raw_data = bytes(4 * 40960 * 100)  # more than its shape needs, too
    path = written(model, tmp_path)
    load(path)
    tracemalloc.start()
    load(path)
    assert tracemalloc.get_traced_memory()[1] < 4 << 20
    tracemalloc.stop()


def test_a_folder_and_a_file_that_is_not_there_are_named(tmp_path: Path):
    with pytest.raises(MissingFile, match=r"gone.onnx: no such file"):
        load(str(tmp_path / "gone.onnx"))
    (tmp_path / "folder.onnx").mkdir()
    with pytest.raises(InputError, match=r"folder\.onnx: is a folder"):
        load(str(tmp_path / "folder.onnx"))


def with_functions(count: int, last: str) -> ModelProto:
    """A model of one call of a function that calls the next one twice, and so on, `count` times; the last one calls `last`."""
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("d", 1)]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("f0", ["x"], ["y"], domain="d")], "g", values[:1], values[1:])
    model = helper.make_model(graph, opset_imports=opsets)
    for i in range(count):
        called, domain = (last, "d" if last.startswith("f") else "") if i == count - 1 else (f"f{i + 1}", "d")
        nodes = [helper.make_node(called, [a], [b], domain=domain) for a, b in ("ab", "bc")]
        model.functions.append(helper.make_function("d", f"f{i}", ["a"], ["c"], nodes, opsets))
    return model


def test_functions_that_grow_without_end_are_refused_before_they_are_written_out(tmp_path: Path):
    assert len(load(written(with_functions(6, "Relu"), tmp_path)).ops) == 64
    with pytest.raises(InputError, match="functions of its own that make more than 30000 nodes"):
        load(written(with_functions(60, "Relu"), tmp_path))
    with pytest.raises(InputError, match="functions of its own that call each other"):
        load(written(with_functions(3, "f0"), tmp_path))


def test_values_without_number_are_refused_while_the_file_is_scanned(tmp_path: Path):
    for field, count, words in (("input", 30_001, "30000 inputs, or outputs"), ("value_info", 60_001, "60000 described values")):
        model = onnx_model([("Relu", "x", "y", {})], {"x": [1, 4]}, ["y"])
        for i in range(count):
            getattr(model.graph, field).add().name = f"v{i}"
        with pytest.raises(InputError, match=words):
            load(written(model, tmp_path))


def test_chains_of_nodes_that_change_nothing_are_taken_out(tmp_path: Path):
    nodes = [("Identity", f"x{i}", f"x{i + 1}", {}) for i in range(50)]
    trace = load(written(onnx_model([*nodes, ("Relu", "x50", "y")], {"x0": [1, 4]}, ["y"]), tmp_path))
    assert [(op.kind.op, op.inputs) for op in trace.ops] == [("relu", ("x0",))]


def test_a_tower_of_recurrent_layers_is_one_call_or_refused(tmp_path: Path):
    def tower(layers: int) -> ModelProto:
        nodes: list[Any] = []
        for i in range(layers):
            nodes += [("LSTM", f"x{i} w r", f"y{i}", {"hidden_size": 8}), ("Squeeze", f"y{i} axis", f"x{i + 1}", {})]
        held = [hollow("w", 1, 32, 8), hollow("r", 1, 32, 8), whole("axis", 1)]
        return onnx_model(nodes, {"x0": [4, 1, 8]}, [f"x{layers}"], held)

    kinds = [op.kind for op in load(written(tower(40), tmp_path)).ops]
    assert [getattr(kind, "layers", 0) for kind in kinds if kind.op == "lstm"] == [40]
    with pytest.raises(InputError, match=r"'layers' must lie in 1..1024, not 1100"):
        load(written(tower(1100), tmp_path))


def layers_of_attention(layers: int) -> ModelProto:
    """Layers of attention, each of which reads the one before."""
    nodes: list[Any] = []
    for layer in range(layers):
        for operator, reads, makes, *more in attention_nodes():
            own = {"x": f"y_{layer}", "y": f"y_{layer + 1}"}
            kept = ("heads", "joined", "b", "root", "wq", "wk", "wv", "wo")
            read, made = (" ".join([own.get(name, name if name in kept else f"{name}_{layer}") for name in names.split()])
                          for names in (reads, makes))  # fmt: skip
            nodes.append((operator, read, made, *more))
    held = [whole("heads", 0, 0, 4, 16), whole("joined", 0, 0, 64), hollow("b", 64), number("root", 4.0),
            *[hollow(name, 64, 64) for name in ("wq", "wk", "wv", "wo")]]  # fmt: skip
    return onnx_model(nodes, {"y_0": ["N", 16, 64]}, [f"y_{layers}"], held)


def parts_that_are_results() -> ModelProto:
    names = [[f"y{i}_{j}" for j in range(1000)] for i in range(25)]
    nodes = [("Split", "x", " ".join(made), {"axis": 0}) for made in names]
    return onnx_model(nodes, {"x": [1000, 4]}, [name for made in names for name in made])


def weights_turned_over_and_over() -> ModelProto:
    turned = [("Transpose", f"w{i}", f"w{i + 1}", {"perm": [1, 0]}) for i in range(9000)]
    used = [("MatMul", f"x{i} w9000", f"x{i + 1}") for i in range(9000)]
    return onnx_model([*turned, *used], {"x0": [4, 4]}, ["x9000"], [hollow("w0", 4, 4)])


def one_name_for_all() -> ModelProto:
    model = onnx_model([("Relu", f"x{i}", f"x{i + 1}") for i in range(20_000)], {"x0": [1, 4]}, ["x20000"])
    for node in model.graph.node:
        node.name = "n"
    return model


@each("made", [lambda: layers_of_attention(700), parts_that_are_results, weights_turned_over_and_over, one_name_for_all])
def test_time_grows_with_a_model_and_not_with_its_square(tmp_path: Path, made: Callable[[], ModelProto]):
    path = written(made(), tmp_path)
    start = time.process_time()
    assert len(load(path).ops) > 5000
    assert time.process_time() - start < 5


def of_many_sizes(count: int, written_as: str) -> ModelProto:
    names = [f"x{i}" for i in range(count)]
    return onnx_model([("Relu", name, f"y{name}") for name in names], {name: [written_as.format(name), 4] for name in names},
                      [f"y{name}" for name in names])  # fmt: skip


@each("written_as", ["{}", "{} + batch", "{}" + "*b" * 90])
def test_open_sizes_without_number_are_refused_before_they_are_worked_out(tmp_path: Path, written_as: str):
    with pytest.raises(InputError, match="leaves more than 1000 different sizes open; refused") as caught:
        load(written(of_many_sizes(4000, written_as), tmp_path))
    assert len(str(caught.value)) < 300


def test_open_sizes_that_are_many_are_not_all_named(tmp_path: Path):
    path = written(of_many_sizes(400, "{}"), tmp_path)
    with pytest.raises(ArgumentError, match=r"needs sizes for x0, .* and 388 more: --bind x0=SIZE") as caught:
        load(path)
    assert len(str(caught.value)) < 1000
    with pytest.raises(ArgumentError) as again:
        archsim.estimate(net=path, hw="gtx_1080")
    assert str(again.value) == str(caught.value)


def test_shapes_that_a_file_states_in_too_many_ways_are_refused(tmp_path: Path):
    nodes = [("my.Odd", f"x{i}", f"x{i + 1}") for i in range(1500)]
    stated = {f"x{i}": [f"a + {i}", 4] for i in range(1, 1501)}
    with pytest.raises(InputError, match="leaves more than 1000 different sizes open"):
        load(written(onnx_model(nodes, {"x0": ["a", 4]}, ["x1500"], shapes=stated), tmp_path))


def test_names_that_fill_the_memory_are_refused(tmp_path: Path):
    long = "n" * 20_000
    nodes = [("Relu", f"{long}{i}", f"{long}{i + 1}") for i in range(1000)]
    with pytest.raises(InputError, match=f"has more than {MOST_LEFT} bytes beside its weights; refused"):
        load(written(onnx_model(nodes, {f"{long}0": [1, 4]}, [f"{long}1000"]), tmp_path))


def test_what_an_error_quotes_of_a_file_is_cut(tmp_path: Path):
    with pytest.raises(InputError, match="has a window of") as caught:
        load(written(conv([1, 3, 8, 8], (8, 3, 3, 3), kernel_shape=[*range(20_000)]), tmp_path))
    assert len(str(caught.value)) < 1200
