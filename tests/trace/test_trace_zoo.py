"""The shipped networks: files as generated and described, and dead layers only where the script has them."""

from __future__ import annotations

from pathlib import Path

from archsim.base.files import data_folder
from archsim.trace import dumps, names
from archsim.trace.zoo.networks import NETWORKS

from ..each import each
from ..shipped import load


def test_every_network_is_shipped_as_it_is_generated():
    assert names() == sorted(NETWORKS)
    for name, build in NETWORKS.items():
        built, shipped = build(), data_folder("traces/nets").joinpath(f"{name}.jsonl").read_text(encoding="utf-8")
        assert shipped == dumps(built), f"{name}: run python -m archsim.trace.zoo"
        assert load(name) == built
        assert built.name == name


def test_every_network_is_described():
    readme = Path(__file__).parents[2].joinpath("traces", "README.md").read_text(encoding="utf-8")
    assert [name for name in NETWORKS if f"`{name}`" not in readme] == []


def test_the_dead_layers_of_the_mxnet_script_are_in_the_file_but_not_in_the_work():
    whole = load("alexnet_s@mxnet")
    dead = {op.name for op in whole.ops} - {op.name for op in whole.without_dead_code().ops}
    assert dead == {"conv4", "relu4", "conv5", "relu5", "fc6", "relu6", "fc7", "relu7"}


@each("name", sorted(set(NETWORKS) - {"alexnet_s@mxnet"}))
def test_no_other_network_has_dead_layers(name):
    assert load(name).without_dead_code() == load(name)


# encoders of text end in their pooler or in their last norm, detectors in maps or lists of boxes
ENDS = {
    "bert_base": ("pooler.tanh",), "bert_large": ("pooler.tanh",), "roberta_base": ("pooler.tanh",),
    "distilbert": ("block6.norm2",), "ssd_300": ("offsets", "prob"), "switch_xl4": ("head",),
    "yolo_v2": ("boxes",), "tiny_yolo_v2": ("boxes",),
    "jouppi_mlp0": ("fc5.relu",), "jouppi_mlp1": ("fc4.relu",), "jouppi_lstm0": ("vector24",), "jouppi_lstm1": ("fc37",),
    "jouppi_cnn0": ("conv16.relu",), "jouppi_cnn1": ("fc4.relu",),
    "yolo_v3": ("head1.boxes", "head2.boxes", "head3.boxes"), "fcn_s@tensorflow": ("prob", "fc4.argmax", "labels.argmax"),
}  # fmt: skip


@each("name", NETWORKS)
def test_every_network_names_its_source_and_ends_in_a_softmax(name):
    """Only a script may end in its last layer, and its graph says so."""
    trace = load(name)
    assert len(trace.source) > 20
    if "@" in name and "loss" in trace.notes:
        assert {op.kind.op for op in trace.ops if op.name in trace.outputs} <= {"linear", "relu"}
    elif name in ENDS:
        assert trace.outputs == ENDS[name]
    elif name.endswith("_body"):
        assert trace.outputs == ("norm",)
    else:
        assert trace.outputs == ("prob",)
        assert trace.ops[-1].kind.op == "softmax"
    assert trace.unsized == ("N",)
    assert set(trace.sizes) <= {"T"}


def test_the_googlenet_of_convnet_benchmarks_leaves_out_what_no_framework_ran():
    """Normalisation, dropout and loss; a ReLU follows the classifier, everything else is GoogLeNet."""
    whole, plain = [{op.name: op.kind.op for op in load(name).ops if op.kind.op != "reshape"}.items()
                    for name in ("googlenet", "googlenet@convnet")]  # fmt: skip
    assert dict(whole - plain) == {"norm1": "lrn", "norm2": "lrn", "drop5": "dropout", "prob": "softmax"}
    assert dict(plain - whole) == {"fc.relu": "relu"}


def test_aliases_point_to_one_network_each_and_hide_none():
    aliases = [alias for name in names() for alias in load(name).aliases]
    assert len(set(aliases)) == len(aliases)
    assert not set(aliases) & set(names())
