"""The files of hosts: those shipped, and what is refused."""

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
def test_every_shipped_host_loads_and_joins_all_its_devices(name: str) -> None:
    spec = find(name)
    machine = spec.machine
    assert machine.id == name
    for gpu in machine.gpus:
        assert machine.path(SERVER, gpu)
        assert machine.path(gpu, machine.gpus[0]) or gpu == machine.gpus[0]
    assert all(kind.ring <= kind.achievable <= 1 for _, _, kind, _ in machine.links)
    assert not machine.holds or machine.holds in device_names()
    assert all(entry.note for entry in spec.assumed)
    assert all(entry.source for entry in spec.entries.values())


def test_boxes_of_a_cluster_are_numbered_through() -> None:
    machine = find("deepbench_8gpu").machine
    assert machine.devices == 32
    assert machine.path("gpu8", "gpu9") == ["gpu8 > box1 plx0", "box1 plx0 > gpu9"]
    assert machine.path("gpu0", "gpu31")[2:4] == ["cpu0 > fabric", "fabric > box3 cpu0"]


def test_parallel_links_add_up() -> None:
    capacity = find("dgx_1_v100").machine.capacity()
    assert capacity["gpu0 > gpu3"] == pytest.approx(2 * capacity["gpu0 > gpu1"])


BAD = {
    "unknown key": (TEXT.replace("decode =", "decoed ="), "input.decoed: unknown key; nearest: decode"),
    "missing key": (TEXT.replace("cores = {", "# cores = {"), "cpu.cores: is missing"),
    "unknown table": (TEXT.replace("[disk]", "[disc]"), "[disc]: no such table; nearest: disk"),
    "no unit": (TEXT.replace('"540 MB/s"', "540"), "lacks its unit"),
    "more than all": (TEXT.replace("value = 0.76", "value = 1.76"), "must be at most 1"),
    "assumed without a note": (TEXT.replace(', note = "one SSD on SATA 6 Gbit/s"', ""), "needs a note"),
    "no graph": (TEXT[: TEXT.index("[graph]")], "graph: is missing"),
    "a device without a link": (TEXT.replace(', ["gpu1", "cpu0"]', ""), "graph: gpu1 has no link"),
    "a device without a path": (TEXT.replace('["gpu1", "cpu0"]', '["gpu1", "plx0"]'), "gpu1 has no path to cpu0"),
    "a device too many": (TEXT.replace("devices = 2", "devices = 1"), "gpu1 is beyond the 1 devices"),
    "a kind without a table": (TEXT.replace("\npcie = [[", "\nnvlink = [["), "no table [links.nvlink]"),
    "a link to itself": (TEXT.replace('["gpu1", "cpu0"]', '["gpu1", "gpu1"]'), "is not a link between two nodes"),
    "no list of links": (TEXT.replace('[["gpu0", "cpu0"], ["gpu1", "cpu0"]]', '"gpu0"'), "is not a link between two nodes"),
    "no devices": (TEXT.replace("devices = 2", "devices = 0"), "devices:"),
    "other schema": (TEXT.replace("schema = 1", "schema = 2"), "schema: must be 1"),
    "no TOML": ("schema = [", "is not valid TOML"),
}


@each(("text", "words"), BAD.values())
def test_a_bad_file_is_refused_with_its_key(tmp_path: Path, text: str, words: str) -> None:
    place = tmp_path / "host.toml"
    place.write_text(text, "utf-8")
    with pytest.raises(InputError) as refusal:
        find(str(place))
    assert words in str(refusal.value)
    assert str(place) in str(refusal.value)


def test_a_typo_names_the_nearest_host() -> None:
    with pytest.raises(UnknownName, match="nearest: dgx_1_v100"):
        find("dgx_1_v10")
