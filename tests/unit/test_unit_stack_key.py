"""Keys of a stack: one declaration in the record makes the schema of the files, the table of keys, `show stack` and its JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from archsim.answers.stack import record, sections
from archsim.base.errors import InputError
from archsim.render.text import text_of
from archsim.stack import catalog
from archsim.stack.key import Key, declared, key, leaves, lines, markdown, read
from archsim.stack.menu import Menu
from archsim.stack.parts import Passes
from archsim.stack.stack import Conv, Stack


def stack_text(name: str) -> str:
    """What `archsim show stack` says."""
    return text_of(sections(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wider(Stack):
    """The record with one more key, declared here and nowhere else."""

    page_size: float = key("size of a page of memory", unit="B", default=4096.0)


@pytest.fixture
def wider(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for remembered in (catalog.find, catalog.composition):
        remembered.cache_clear()
    monkeypatch.setattr(catalog, "RECORD", Wider)
    yield
    for remembered in (catalog.find, catalog.composition):
        remembered.cache_clear()


def file_of(folder: Path, content: str) -> str:
    path = folder / "mine.toml"
    path.write_text(f'schema = 1\nid = "mine"\nlike = "caffe-cudnn4"\n{content}\n')
    return str(path)


@pytest.mark.usefixtures("wider")
def test_a_key_declared_in_the_record_is_found_in_files_in_the_table_of_keys_in_show_stack_and_in_json(tmp_path: Path) -> None:
    place = file_of(tmp_path, 'page_size = "2 MiB"\nsources = { "*" = "a source of mine" }')
    found = catalog.find(place)
    assert isinstance(found, Wider)
    assert found.page_size == 2 * 2**20
    assert "| `page_size` | text with its unit, B | 4096 B | size of a page of memory |" in markdown(Wider)
    (line,) = [line.split() for line in stack_text(place).splitlines() if line.startswith("  page_size")]
    assert line[:4] == ["page_size", "2", "MiB", place]
    found = json.loads(json.dumps(record(place)))
    assert found["values"]["page_size"] == {"value": "2 MiB", "component": place, "source": "a source of mine"}
    assert found["keys"]["page_size"]["doc"] == "size of a page of memory"


@pytest.mark.usefixtures("wider")
def test_a_key_that_no_file_sets_is_shown_at_its_default(tmp_path: Path) -> None:
    place = file_of(tmp_path, "")
    assert catalog.find(place) == replace(catalog.find(place), page_size=4096.0)
    assert record(place)["values"]["page_size"] == {"value": "4096 B", "component": "default", "source": ""}
    assert any(line.split() == ["page_size", "4096", "B", "default"] for line in stack_text(place).splitlines())


@pytest.mark.usefixtures("wider")
def test_a_wrong_value_of_a_new_key_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="page_size: '2' lacks its unit"):
        catalog.find(file_of(tmp_path, 'page_size = "2"'))


def test_without_its_declaration_the_key_is_unknown(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="page_size: unknown key"):
        catalog.find(file_of(tmp_path, 'page_size = "2 MiB"'))


def test_every_key_says_what_it_means() -> None:
    found = list(lines(Stack))
    assert len({line.path for line in found}) == len(found) > 60
    assert [line.path for line in found if len(line.doc) < 8 or not line.takes] == []


def test_every_key_refuses_what_it_cannot_be() -> None:
    """A date fits no key; nor does a number a text, a flag or a size, nor a text a number."""
    accepted = []
    for name, (_, about, _) in declared(Stack).items():
        for wrong in (object(), -1, "nonsense ", [[["x"]]]):
            if wrong == "nonsense " and not about.choices and not about.unit and declared(Stack)[name][0] is str:
                continue  # any text will do
            problems = read(Stack, {name: wrong})[1]
            if not any(problem.startswith((f"{name}:", f"{name}.", f"{name}[")) for problem in problems):
                accepted.append((name, wrong))
    assert accepted == []


def test_values_come_apart_where_components_can_set_them_apart() -> None:
    rows = {"forward": {"inputs": 1, "outputs": 1}, "backward": {"inputs": 2, "outputs": 1}}
    table: dict[str, Any] = {
        "host": "h", "unknown": {"a": 1}, "passes": {"relu": rows}, "menus": {"gemm": {"kernels": ["generic"], "split_k": [1]}},
        "conv": {"bias": "fused", "algorithms": {"forward": {"direct": "one"}}}, "efficiency": {"gemm.x": "one"},
    }  # fmt: skip
    assert dict(leaves(Stack, table)) == {
        ("host",): "h", ("unknown",): {"a": 1}, ("conv", "bias"): "fused", ("efficiency", "gemm.x"): "one",
        ("passes", "relu", "forward"): rows["forward"], ("passes", "relu", "backward"): rows["backward"],
        ("menus", "gemm"): {"kernels": ["generic"], "split_k": [1]}, ("conv", "algorithms"): {"forward": {"direct": "one"}},
    }  # fmt: skip


def test_names_that_share_a_row_are_written_once() -> None:
    row = {"inputs": 1, "outputs": 1}
    algorithms = {"forward, backward_data": {"a": "one"}}
    table = {"passes": {"relu, tanh": {"forward, backward": row}}, "conv": {"algorithms": algorithms}}
    assert dict(leaves(Stack, table)) == {
        **{("passes", op, phase): row for op in ("relu", "tanh") for phase in ("forward", "backward")},
        ("conv", "algorithms"): {"forward": {"a": "one"}, "backward_data": {"a": "one"}},
    }


def test_a_record_inside_a_record_is_listed_by_its_path() -> None:
    paths = [line.path for line in lines(Stack)]
    assert {"conv.bias", "attention.fused", "menus.NAME.split_k", "menus.NAME.least"} <= {*paths}
    assert {line.default for line in lines(Stack) if line.path in ("conv.workspace_limit",)} == {"none"}
    assert "passes.NAME.(forward or training or backward).launches" in paths


def test_what_an_architecture_has_no_kernel_for_is_no_candidate() -> None:
    conv, problems = read(Conv, {
        "algorithms": {"forward": {"a": "one", "b": "two"}}, "tensor": {"forward": {"a": "t"}},
        "architectures": {"kepler": {"forward": {"a": "own", "b": "none", "z": "no"}}},
    })  # fmt: skip
    assert problems == []
    assert conv is not None
    found = {(a, t): conv.candidates(a, t)["forward"] for a in ("kepler", "volta") for t in (False, True)}
    assert found == {
        ("kepler", False): {"a": "own"}, ("volta", False): {"a": "one", "b": "two"},
        ("kepler", True): {"a": "t"}, ("volta", True): {"a": "t"},
    }  # fmt: skip


def test_tensor_cores_take_the_same_algorithms_where_no_others_are_named() -> None:
    conv, _ = read(Conv, {"algorithms": {"forward": {"a": "one"}}})
    assert conv is not None
    assert conv.candidates("volta", True) == {"forward": {"a": "one"}}


def test_a_required_key_is_missed_and_a_default_is_not() -> None:
    found, problems = read(Passes, {"launches": 2})
    assert (found, problems) == (None, ["inputs: is missing", "outputs: is missing"])
    assert read(Menu, {}) == (Menu(), [])
    assert Key(doc="x").choices == ()


def test_json_of_a_stack_holds_every_value_with_its_component() -> None:
    for name in ("ideal", "torch7-mkl", "tensorrt-llm"):
        found: Mapping[str, Any] = json.loads(json.dumps(record(name), allow_nan=False))
        assert found["parts"] == catalog.composition(name).parts
        assert all(one["component"] and (one["source"] or one["component"] == "default" or path in ("kind", "framework"))
                   for path, one in found["values"].items()), name  # fmt: skip
