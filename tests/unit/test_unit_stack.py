"""Stacks: how components are composed, where each value comes from, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from archsim.base.errors import InputError, MissingFile, UnknownName
from archsim.stack import catalog, compose
from archsim.stack.compose import Component, origins
from archsim.stack.stack import Stack

HEAD = 'schema = 1\nid = "mine"\n'


def of_text(folder: Path, content: str, like: str = 'like = "ideal"') -> Stack:
    path = folder / "mine.toml"
    path.write_text(f"{HEAD}{like}\n{content}")
    catalog.composition.cache_clear()
    return catalog.find.__wrapped__(str(path))


def problems(folder: Path, content: str, like: str = 'like = "ideal"') -> list[str]:
    with pytest.raises(InputError) as caught:
        of_text(folder, content, like)
    return list(caught.value.problems)


def composed(parts: Mapping[str, str], own: Mapping[str, object] | None = None) -> compose.Composition:
    return compose.compose(Stack, "mine", parts, [Component(label="mine", table=own or {}, sources={})])


def test_every_shipped_stack_loads() -> None:
    for name in catalog.names():
        stack = catalog.find(name)
        assert stack.id == name
        assert {*stack.conv.algorithms} >= {"forward"}, name


def test_a_component_is_no_stack() -> None:
    for name in ("base", "caffe", "cudnn"):
        assert name not in catalog.names()
        with pytest.raises(UnknownName):
            catalog.find(name)


def test_an_unknown_stack_offers_near_ones() -> None:
    with pytest.raises(UnknownName, match="nearest: caffe-cudnn4"):
        catalog.find("caffe-cudnn")
    with pytest.raises(MissingFile):
        catalog.find("/no/such.toml")


def test_a_file_changes_only_what_it_names(tmp_path: Path) -> None:
    ideal = catalog.find("ideal")
    mine = of_text(tmp_path, 'kind = "gpu"\n[passes]\nrelu = { forward = { inputs = 7, outputs = 3 } }\n')
    assert (mine.id, mine.kind) == ("mine", "gpu")
    assert (mine.passes["relu"]["forward"].inputs, mine.passes["relu"]["forward"].outputs) == (7, 3)
    assert mine.passes["relu"]["backward"] == ideal.passes["relu"]["backward"]
    assert mine.passes["default"] == ideal.passes["default"]
    assert mine.conv == ideal.conv


def test_a_file_may_take_other_parts_than_the_stack_it_is_like(tmp_path: Path) -> None:
    mine = of_text(tmp_path, 'parts = { library = "cudnn 5.1" }\n', 'like = "caffe-cudnn4"')
    assert mine.conv.algorithms == catalog.find("caffe-cudnn5.1").conv.algorithms
    assert mine.menus["gemm"] == catalog.find("caffe-cudnn4").menus["gemm"]


def test_a_file_of_parts_needs_no_stack_to_be_like(tmp_path: Path) -> None:
    mine = of_text(tmp_path, 'parts = { framework = "torch7", library = "cudnn 4", blas = "cublas 7.5" }\n', "")
    assert composed(catalog.composition("torch7-cudnn4").parts).table() == catalog.composition("torch7-cudnn4").table()
    assert mine.conv == catalog.find("torch7-cudnn4").conv


def test_a_version_has_what_the_versions_before_brought() -> None:
    menus = {version: composed({"library": f"cudnn {version}"}).table()["menus"] for version in ("4", "5.0", "7.1")}
    assert menus["5.0"]["winograd"] == menus["4"]["winograd"]
    assert menus["5.0"]["conv_backward_filter"] != menus["4"]["conv_backward_filter"] != menus["7.1"]["conv_backward_filter"]
    assert "transformed_tensor" in menus["7.1"].keys() - menus["5.0"].keys()


def test_a_component_says_what_holds_for_one_kind_of_device() -> None:
    gpu, cpu = (composed({"framework": "mxnet"}, {"kind": kind}).table() for kind in ("gpu", "cpu"))
    assert gpu["recurrent_launches"] == cpu["recurrent_launches"] == 13
    assert (gpu["reserved"], gpu["conv"]["workspace_limit"]) == ("300 MB", "1024 MiB")
    assert "reserved" not in cpu
    assert cpu["in_place"] == ["relu"]


def test_parts_that_disagree_are_refused_unless_the_stack_decides() -> None:
    parts = {"framework": "caffe2", "library": "cudnn 5.1", "blas": "cublas 8"}
    with pytest.raises(ValueError, match=r"passes\.lrn\.forward: frameworks/caffe2.toml and libraries/cudnn.toml since 1"):
        composed(parts)
    rows = {phase: {"inputs": 1, "outputs": 1} for phase in ("forward", "backward")}
    assert composed(parts, {"passes": {"lrn": rows}}).table()["passes"]["lrn"] == rows
    with pytest.raises(ValueError, match=r"kind: libraries/cudnn\.toml and blas/openblas\.toml"):
        composed({"library": "cudnn 4", "blas": "openblas"})


def test_the_order_of_framework_library_and_blas_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    ordered = {name: catalog.composition(name).assigned for name in catalog.names()}
    catalog.composition.cache_clear()
    turned_axes = ("blas", "library", "framework", "engine", "fusion")
    monkeypatch.setattr(compose, "AXES", {axis: compose.AXES[axis] for axis in turned_axes})
    turned = {name: catalog.composition(name).assigned for name in catalog.names()}
    catalog.composition.cache_clear()
    differing = {name: [path for path in one if one[path].value != turned[name][path].value] for name, one in ordered.items()}
    assert {name: paths for name, paths in differing.items() if paths} == {}
    assert ordered.keys() == turned.keys()


def test_the_example_of_the_readme_is_a_stack(tmp_path: Path) -> None:
    readme = Path(__file__).parents[2].joinpath("traces", "stacks", "README.md").read_text("utf-8")
    example = readme.partition("    schema = 1\n")[2].partition("\n\n")[0]
    (tmp_path / "mine.toml").write_text("schema = 1\n" + example.replace("\n    ", "\n").removeprefix("    "))
    mine = catalog.find(str(tmp_path / "mine.toml"))
    assert (mine.conv.workspace_limit, "winograd_nonfused" in mine.conv.algorithms["forward"]) == (64 * 2**20, True)
    assert catalog.composition(str(tmp_path / "mine.toml")).parts["library"] == "cudnn 6"


def test_an_engine_stands_over_its_library() -> None:
    assert composed({"library": "cudnn 8", "blas": "cublas 11"}).table()["window_loop"] == "checked"
    assert catalog.find("tensorrt-8").window_loop == "unrolled"


def test_a_table_of_algorithms_replaces_the_one_below(tmp_path: Path) -> None:
    mine = of_text(tmp_path, '[conv.algorithms]\nforward = { im2col = "one" }\n', 'like = "caffe-cudnn4"')
    assert mine.conv.algorithms == {"forward": {"im2col": "one"}}
    assert mine.conv.workspace_limit == catalog.find("caffe-cudnn4").conv.workspace_limit


def test_each_value_knows_the_component_that_set_it_and_its_source() -> None:
    found = {o.path: o for o in origins(Stack, catalog.composition("torch7-cudnn5.1-frugal"))}
    assert found["conv.workspace_limit"].component == "stacks.toml: torch7-cudnn5.1-frugal"
    assert found["conv.workspace_limit"].source.startswith("soumith/cudnn.torch, find.lua")
    assert "implicit_convolve_sgemm" in found["conv.algorithms"].source
    tuned = {o.path: o for o in origins(Stack, catalog.composition("torch7-cudnn5.1"))}
    assert tuned["conv.algorithms"].component == "libraries/cudnn.toml since 5.1"
    assert "computeOffsetsKernel" in tuned["conv.index_launches"].source
    assert (found["reserved"].value, found["reserved"].component) == ("300 MB", "frameworks/torch7.toml [gpu]")
    assert found["passes.tanh.forward"].component == "base.toml"
    assert (found["graphs"].value, found["graphs"].component) == ("never", "")


def test_a_source_stands_for_the_keys_below_it_and_the_longest_wins() -> None:
    part = Component(label="", table={}, sources={"*": "rest", "menus, passes.lrn": "both", "menus.gemm": "gemm"})
    sources = [part.source(path) for path in (("host",), ("menus", "x"), ("menus", "gemm"), ("passes", "lrn", "forward"))]
    assert sources == ["rest", "both", "gemm", "both"]
    assert part.source(("menus_of", "x")) == "rest"


def test_the_digest_sees_every_change(tmp_path: Path) -> None:
    digests = {of_text(tmp_path, content).digest for content in ("", 'host = "host.caffe"\n', 'reserved = "1 MB"\n')}
    assert len(digests) == 3
    assert of_text(tmp_path, "").digest == of_text(tmp_path, '[sources]\n"*" = "a remark"\n').digest  # a source changes no value


def test_sizes_are_in_bytes(tmp_path: Path) -> None:
    mine = of_text(tmp_path, 'reserved = "300 MB"\n[conv]\nworkspace_limit = "8 MiB"\n')
    assert (mine.reserved, mine.conv.workspace_limit) == (300e6, 8 * 2**20)


def test_all_problems_of_a_file_are_said_at_once(tmp_path: Path) -> None:
    assert len(problems(tmp_path, 'foo = 1\nreserved = "5"\n[passes]\nrelu = { forward = 3 }\n')) == 3


def test_a_file_that_is_composed_of_nothing_known_is_refused(tmp_path: Path) -> None:
    for content, like, said in (
        ("", 'like = "nope"', "like: no stack 'nope'"), ("", "like = 5", "like: no stack 5"),
        ('parts = "cudnn"\n', "", "parts: must be a table of names"),
        ('parts = { kernel = "cudnn 4" }\n', "", "parts.kernel: unknown part; known: framework, library"),
        ('parts = { library = "cudmn 4" }\n', "", "parts.library: no library 'cudmn'; nearest: cudnn"),
        ('parts = { library = "cudnn" }\n', "", "parts.library: cudnn: no version is named; known: 1, 2"),
        ('parts = { blas = "openblas 3" }\n', "", "parts.blas: openblas: no version '3'; known: none"),
        ("sources = 5\n", "", "sources: must be a table of texts"),
        ('sources = { "host, conv.bias" = "x" }\nhost = ""\n', 'like = "ideal"', "sources.conv.bias: the file does not"),
    ):  # fmt: skip
        assert any(problem.startswith(said) for problem in problems(tmp_path, content, like)), content
    (tmp_path / "two.toml").write_text('schema = 2\nid = "Mine!"\n')
    with pytest.raises(InputError, match=r"(?s)schema: must be 1, is 2.*id: must be 2 to 40"):
        catalog.find(str(tmp_path / "two.toml"))
    with pytest.raises(InputError, match="is not valid TOML"):
        of_text(tmp_path, "[")


def test_a_stack_that_falls_back_on_nothing_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compose, "_base", lambda: Component(label="", table={}, sources={}))
    content = (
        'kind = "gpu"\nframework = "f"\nefficiency.gemm = "one"\nconv.algorithms = {}\n'
        "passes.tanh.forward = { inputs = 1, outputs = 1 }\noptimiser_passes.sgd = { inputs = 1, outputs = 1 }\n"
    )
    assert {*problems(tmp_path, content, "")} == {
        "passes.default.forward: is missing", "passes.default.backward: is missing", "optimiser_passes.default: is missing",
    }  # fmt: skip
