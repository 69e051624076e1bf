"""Stacks: how files are merged, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from archsim.base.errors import InputError, MissingFile, UnknownName
from archsim.stack import catalog
from archsim.stack.stack import Stack

from ..each import each

HEAD = 'schema = 1\nid = "mine"\nkind = "gpu"\nframework = "f"\nlibrary = "l"\n'


def read(folder: Path, content: str, inherits: str = '["ideal"]') -> Stack:
    path = folder / "mine.toml"
    path.write_text(f"{HEAD}inherits = {inherits}\n{content}")
    return catalog.find.__wrapped__(str(path))


def refused(folder: Path, content: str, match: str, inherits: str = '["ideal"]') -> None:
    with pytest.raises(InputError, match=match):
        read(folder, content, inherits)


@each("name", catalog.names())
def test_every_shipped_stack_loads_and_gives_sources(name: str) -> None:
    stack = catalog.find(name)
    assert stack.id == name
    assert stack.sources
    assert set(stack.conv.algorithms) >= {"forward"}


def test_abstract_files_are_no_stacks() -> None:
    assert "base" not in catalog.names()
    with pytest.raises(UnknownName):
        catalog.find("base")


def test_an_unknown_stack_offers_near_ones() -> None:
    with pytest.raises(UnknownName, match="nearest: caffe-cudnn4"):
        catalog.find("caffe-cudnn")
    with pytest.raises(MissingFile):
        catalog.find("/no/such.toml")


def test_a_file_changes_only_what_it_names(tmp_path: Path) -> None:
    ideal = catalog.find("ideal")
    mine = read(tmp_path, "[passes]\nrelu = { forward = { inputs = 7, outputs = 3 } }\n")
    assert (mine.id, mine.kind) == ("mine", "gpu")
    assert (mine.passes["relu"]["forward"].inputs, mine.passes["relu"]["forward"].outputs) == (7, 3)
    assert mine.passes["relu"]["backward"] == ideal.passes["relu"]["backward"]
    assert mine.passes["default"] == ideal.passes["default"]
    assert mine.conv == ideal.conv


def test_later_parents_win_over_earlier_ones(tmp_path: Path) -> None:
    for order in (("caffe-native", "ideal"), ("ideal", "caffe-native")):
        mine = read(tmp_path, "", f'["{order[0]}", "{order[1]}"]')
        assert dict(mine.conv.algorithms["forward"]) == dict(catalog.find(order[1]).conv.algorithms["forward"])


def test_a_table_of_algorithms_replaces_the_inherited_one(tmp_path: Path) -> None:
    mine = read(tmp_path, '[conv.algorithms]\nforward = { im2col = "one" }\n', '["caffe-cudnn4"]')
    assert {phase: dict(rows) for phase, rows in mine.conv.algorithms.items()} == {"forward": {"im2col": "one"}}
    assert mine.conv.workspace_limit == catalog.find("caffe-cudnn4").conv.workspace_limit


def test_sources_of_all_parents_are_kept(tmp_path: Path) -> None:
    mine = read(tmp_path, '[sources]\nmine = "my own measurement"\n')
    assert set(mine.sources) == {*catalog.find("ideal").sources, "my own measurement"}


def test_the_digest_sees_every_change(tmp_path: Path) -> None:
    digests = {read(tmp_path, content).digest for content in ("", 'host = "host.caffe"\n', 'reserved = "1 MB"\n')}
    assert len(digests) == 3


def test_sizes_are_in_bytes(tmp_path: Path) -> None:
    mine = read(tmp_path, 'reserved = "300 MB"\n[conv]\nworkspace_limit = "8 MiB"\n')
    assert (mine.reserved, mine.conv.workspace_limit) == (300e6, 8 * 2**20)


def test_a_circle_of_parents_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.toml").write_text(HEAD + 'inherits = ["b"]\n')
    (tmp_path / "b.toml").write_text(HEAD + 'inherits = ["a"]\n')
    monkeypatch.setattr(catalog, "data_folder", lambda _: tmp_path)
    with pytest.raises(InputError, match="or a circle"):
        catalog.find.__wrapped__(str(tmp_path / "a.toml"))


def test_hostile_files(tmp_path: Path) -> None:
    refused(tmp_path, "foo = 1\n", "foo: unknown key")
    refused(tmp_path, "[conv]\nfoo = 1\n", "conv")
    refused(tmp_path, "conv = 5\n", "conv: ")
    refused(tmp_path, '[conv.algorithms]\nsideways = { im2col = "one" }\n', "sideways")
    refused(tmp_path, "[menus.gemm]\ntiles = []\nsource = 'x'\n", "menus: ")
    refused(tmp_path, 'reserved = "-5 GB"\n', "reserved: -5 GB is less than nothing")
    refused(tmp_path, '[conv]\nworkspace_limit = "-8 MiB"\n', "workspace_limit: -8 MiB is less than nothing")
    refused(tmp_path, 'reserved = "1e300 PB"\n', "is not finite")
    refused(tmp_path, 'reserved = "5"\n', "lacks its unit")
    refused(tmp_path, "[passes]\nrelu = { forward = { inputs = -1, outputs = 1 } }\n", "passes: ")
    refused(tmp_path, "[passes]\nrelu = { forward = { inputs = nan, outputs = 1 } }\n", "passes: ")
    refused(tmp_path, "", "no stack file 'nope'", '["nope"]')
    refused(tmp_path, "", "must be a list", '"ideal"')
    refused(tmp_path, "", "must be a list", "5")
    refused(tmp_path, "[", "is not valid TOML")


def test_a_stack_that_falls_back_on_nothing_is_refused(tmp_path: Path) -> None:
    content = (
        'sources = { a = "b" }\nefficiency = {}\npasses = {}\noptimiser_passes = {}\n[conv]\nsource = "a"\nalgorithms = {}\n'
    )
    with pytest.raises(InputError) as caught:
        read(tmp_path, content, "[]")
    assert set(caught.value.problems) >= {
        "passes.default.forward: is missing", "passes.default.backward: is missing", "optimiser_passes.default: is missing",
    }  # fmt: skip
