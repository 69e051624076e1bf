"""The files of nodes: those shipped, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from archsim.base.errors import InputError, UnknownName
from archsim.base.files import data_folder
from archsim.device.catalog import names as device_names
from archsim.node.node import SERVER
from archsim.node.spec import find, names

from ..each import each

TEXT = data_folder("hwspecs/hosts").joinpath("desktop_2gpu.toml").read_text("utf-8")


@pytest.mark.parametrize("name", names())
def test_every_shipped_node_loads_and_joins_all_its_devices(name: str) -> None:
    spec = find(name)
    node = spec.node
    assert node.id == name
    for gpu in node.gpus:
        assert node.path(SERVER, gpu)
        assert node.path(gpu, node.gpus[0]) or gpu == node.gpus[0]
    assert all(kind.ring <= kind.achievable <= 1 for _, _, kind, _ in node.links)
    assert not node.holds or node.holds in device_names()
    assert all(entry.note for entry in spec.assumed)
    assert all(entry.source for entry in spec.entries.values())


def test_boxes_of_a_cluster_are_numbered_through() -> None:
    node = find("deepbench_8gpu").node
    assert node.devices == 32
    assert node.path("gpu8", "gpu9") == ["gpu8 > box1 plx0", "box1 plx0 > gpu9"]
    assert node.path("gpu0", "gpu31")[2:4] == ["cpu0 > fabric", "fabric > box3 cpu0"]


def test_a_node_has_the_cores_of_its_host_cpu_on_every_socket() -> None:
    nodes = {name: find(name).node for name in names()}
    found = {name: (node.host_cpu.id, node.host_cpu.sockets, node.cores) for name, node in nodes.items()}
    assert found["dgx_1_v100"] == ("xeon_e5_2698_v4", 2, 40)
    assert found["deepbench_8gpu"] == ("xeon_e5_2650_v2", 2, 16)
    assert found["dgx_a100"] == ("epyc_7742", 2, 128)
    assert found["xeon_e5_2680_v2_4gpu"] == ("xeon_e5_2680_v2", 2, 20)


def test_parallel_links_add_up() -> None:
    capacity = find("dgx_1_v100").node.capacity()
    assert capacity["gpu0 > gpu3"] == pytest.approx(2 * capacity["gpu0 > gpu1"])


BAD = {
    "unknown key": (TEXT.replace("pixels =", "pixel ="), "input.pixel: unknown key; nearest: pixels"),
    "missing key": (TEXT.replace("sockets = {", "# sockets = {"), "host_cpu.sockets: is missing"),
    "unknown CPU": (TEXT.replace('"i7_6700k"', '"i7_6701k"'), "host_cpu.id: unknown device 'i7_6701k'; nearest: i7_6700k"),
    "a GPU as host CPU": (TEXT.replace('"i7_6700k"', '"gtx_1080"'), "host_cpu.id: gtx_1080 is a GPU"),
    "an absent value": (TEXT.replace('"540 MB/s"', '"absent"'), "disk.bandwidth: 'absent' is not a number"),
    "half a socket": (TEXT.replace("sockets = { value = 1,", "sockets = { value = 0.5,"), "outside the range 1 to 1024"),
    "unknown table": (TEXT.replace("[disk]", "[disc]"), "[disc]: no such table; nearest: disk"),
    "no unit": (TEXT.replace('"540 MB/s"', "540"), "lacks its unit"),
    "more than all": (TEXT.replace("value = 0.76", "value = 1.76"), "outside the range > 0 to 1"),
    "assumed without a note": (TEXT.replace(', note = "one SSD on SATA 6 Gbit/s"', ""), "needs a note"),
    "no graph": (TEXT[: TEXT.index("[graph]")], "graph: is missing"),
    "a device without a link": (TEXT.replace(', ["gpu1", "cpu0"]', ""), "graph: gpu1 has no link"),
    "a device without a path": (TEXT.replace('["gpu1", "cpu0"]', '["gpu1", "plx0"]'), "gpu1 has no path to cpu0"),
    "a device too many": (TEXT.replace("devices = 2", "devices = 1"), "gpu1 is beyond the 1 devices"),
    "a kind without a table": (TEXT.replace("\npcie = [[", "\nnvlink = [["), "no table [links.nvlink]"),
    "a link to itself": (TEXT.replace('["gpu1", "cpu0"]', '["gpu1", "gpu1"]'), "is not a link between two ends"),
    "no list of links": (TEXT.replace('[["gpu0", "cpu0"], ["gpu1", "cpu0"]]', '"gpu0"'), "is not a link between two ends"),
    "no devices": (TEXT.replace("devices = 2", "devices = 0"), "devices:"),
    "other schema": (TEXT.replace("schema = 1", "schema = 2"), "schema: must be 1"),
    "no TOML": ("schema = [", "is not valid TOML"),
}


@each(("text", "words"), BAD.values())
def test_a_bad_file_is_refused_with_its_key(tmp_path: Path, text: str, words: str) -> None:
    place = tmp_path / "node.toml"
    place.write_text(text, "utf-8")
    with pytest.raises(InputError) as refusal:
        find(str(place))
    assert words in str(refusal.value)
    assert str(place) in str(refusal.value)


def test_a_typo_names_the_nearest_node() -> None:
    with pytest.raises(UnknownName, match="nearest: dgx_1_v100"):
        find("dgx_1_v10")
