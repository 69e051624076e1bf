"""A changed device: what it is called, what of its base it keeps, and which devices have its values."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import archsim
from archsim.device import catalog
from archsim.device.device import PARTS
from archsim.device.part import declared
from archsim.device.spec import Spec
from archsim.device.variant import called, changes, values_digest
from archsim.device.write import to_toml

CHILD = """
schema = 1
id = "my_card"
name = "A card of mine"
inherits = "gtx_1080"
year = 2020
[clock]
sustained = { value = "1650 MHz", source = "a run", kind = "measured" }
[power]
idle = { value = "38 W", source = "a guess", kind = "assumed", note = "as its parent" }
[sm]
count = { value = COUNT, source = "a guess", kind = "assumed", note = "a wish" }
"""


LARGER = 'size = { value = "2 MiB"', 'size = { value = "4 MiB"'  # the L2


def card(**settings: str) -> Spec:
    return catalog.find("gtx_1080").with_settings({key.replace("__", "."): value for key, value in settings.items()})


def copy(folder: Path, *changes: tuple[str, str], of: str = "gtx_1080") -> str:
    """The path of a whole file with the values of a shipped device, after replacing some text."""
    text = to_toml(catalog.find(of), "a copy")
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    place = folder / "mine.toml"
    place.write_text(text, "utf-8")
    return str(place)


def child(folder: Path, count: int) -> Spec:
    place = folder / "child.toml"
    place.write_text(CHILD.replace("COUNT", str(count)), "utf-8")
    return catalog.find(str(place))


def test_a_what_if_is_called_by_its_changes() -> None:
    assert called(card()) == "gtx_1080"
    assert called(card(sm__count="80")) == "gtx_1080 with sm.count = 80"
    assert called(catalog.find("gtx_1080").with_settings({}, {"sm.count": 2.0})) == "gtx_1080 with sm.count = 40"
    assert called(card(sm__count="80").with_settings({"l2.size": "4 MiB"})) == "gtx_1080 with sm.count = 80, l2.size = 4 MiB"
    many = card(sm__count="80", l2__size="4 MiB", sm__ctas="16", sm__warps="32")
    assert called(many) == "gtx_1080 with sm.count = 80, sm.warps = 32 and 2 other values"
    assert len(changes(many)) == 4


def test_the_same_value_is_no_change() -> None:
    same = card(sm__count="20", memory__bandwidth="0.32 TB/s").with_settings({}, {"l2.size": 1.0})
    assert (called(same), changes(same), same.assumed) == ("gtx_1080", {}, card().assumed)
    assert catalog.twins(same) == ("gtx_1080",)


def test_what_a_user_wrote_stays_on_one_line() -> None:
    assert called(card(memory__type="GDDR6\n\x1b[31m")) == "gtx_1080 with memory.type = GDDR6??[31m"


def test_a_child_is_called_by_what_it_changes(tmp_path: Path) -> None:
    assert called(child(tmp_path, 80)) == "my_card (gtx_1080 with sm.count = 80)"
    assert called(child(tmp_path, 80).with_settings({"l2.size": "4 MiB"})) == (
        "my_card (gtx_1080 with sm.count = 80) with l2.size = 4 MiB"
    )
    assert called(child(tmp_path, 20)) == "my_card"
    assert called(catalog.find("a100_sxm4_80gb")) == "a100_sxm4_80gb"  # shipped, though its file inherits


def test_a_file_with_the_id_of_a_shipped_device_is_told_apart(tmp_path: Path) -> None:
    assert called(catalog.find(copy(tmp_path, LARGER))) == "gtx_1080 with l2.size = 4 MiB"
    assert called(catalog.find(copy(tmp_path))) == "gtx_1080"


def test_no_two_shipped_devices_have_the_same_values() -> None:
    digests = {values_digest(catalog.find(name)) for name in catalog.names()}
    assert len(digests) == len(catalog.names())


def test_published_rows_belong_to_the_values_not_to_the_id(tmp_path: Path) -> None:
    def sources(hw: str, **more: object) -> list[tuple[str, float]]:
        found = archsim.estimate(net="alexnet", hw=hw, batch=16, **more)
        return [(r.source, r.predicted) for r in found.references]

    published = sources("gtx_1080")
    assert published
    assert sources(copy(tmp_path, ('id = "gtx_1080"', 'id = "my_card"'))) == published
    assert sources("gtx_1080", set={"sm.count": "20"}) == published
    assert sources("gtx_1080", set={"sm.count": "21"}) == []
    assert sources(copy(tmp_path, LARGER)) == []
    # What is only shown makes no other device.
    assert sources(copy(tmp_path, ("314 mm2", "320 mm2"))) == published


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ({"sm.count": "40"}, False), ({"memory.capacity": "16 GiB"}, False), ({"rate.tensor_fp16": "512 FMA/clk"}, False),
        ({"memory.type": "GDDR6"}, False), ({"clock.sustained": "1.5 GHz"}, True), ({"power.tdp": "150 W"}, True),
        ({"memory.achievable": "0.8"}, True), ({"chip.area": "400 mm2"}, True), ({"sm.count": "20"}, True),
        ({"launch.host_cpu": "i7_5930k"}, True),
    ],
)  # fmt: skip
def test_another_product_has_no_price(settings: dict[str, str], kept: bool) -> None:
    assert ("market.price" in catalog.find("gtx_1080").with_settings(settings).entries) is kept
    priced = catalog.find("gtx_1080").with_settings({**settings, "market.price": "700 USD"})
    assert priced.entries["market.price"].value == 700.0


def test_a_child_has_no_price_of_its_parent(tmp_path: Path) -> None:
    assert not {"market.price", "market.launch"} & child(tmp_path, 80).entries.keys()


def test_every_key_of_a_price_is_of_the_market() -> None:
    assert all(not unit.inherited for unit, _ in declared(PARTS["gpu"]["market"]).values())


def test_an_unknown_architecture_takes_the_kernels_of_the_nearest(tmp_path: Path) -> None:
    copied = copy(tmp_path, ('architecture = "ampere"', 'architecture = "zebra"'), of="a100_sxm4_40gb")
    found, known = (archsim.estimate(net="resnet_50", hw=hw, batch=16, precision="fp16") for hw in (copied, "a100_sxm4_40gb"))
    assert found.latency_s == known.latency_s
    assert any(note.startswith("architecture zebra: not one of ada, ampere, ") and note.endswith("nearest, ampere")
               for note in found.assumptions)  # fmt: skip
    assert not any("architecture" in note for note in known.assumptions)


def test_a_child_of_an_unknown_architecture_takes_the_kernels_of_its_parent(tmp_path: Path) -> None:
    place = tmp_path / "child.toml"
    place.write_text(CHILD.replace("COUNT", "80").replace("year = 2020", 'year = 2020\narchitecture = "zebra"'), "utf-8")
    assert catalog.find(str(place)).identity.like == "pascal"
    assert changes(catalog.find(str(place)))["architecture"] == "zebra"


def test_the_nearest_architecture_is_found_without_the_device_itself() -> None:
    for name in ("gtx_1080", "tesla_v100_sxm2", "a40", "tesla_t4", "tesla_k40"):
        spec = catalog.find(name)
        others = [catalog.find(n) for n in catalog.names() if n != name]
        own = replace(spec, identity=replace(spec.identity, architecture="zebra"))
        assert catalog.nearest_architecture(own, [s for s in others if s.kind == spec.kind]) == spec.identity.architecture


def test_a_cpu_of_an_unknown_architecture_says_that_no_model_reads_it(tmp_path: Path) -> None:
    copied = copy(tmp_path, ('architecture = "skylake"', 'architecture = "zebra"'), of="i7_6700k")
    found = archsim.estimate(net="alexnet", hw=copied)
    assert found.latency_s == archsim.estimate(net="alexnet", hw="i7_6700k").latency_s
    assert any("architecture zebra" in note and "only the values" in note for note in found.assumptions)
