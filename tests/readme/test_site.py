"""The site of the manual: every page is in a menu, every link leads somewhere, every term and key has its place."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from archsim.base.errors import InputError
from archsim.cli.main import COMMANDS, group
from archsim.cli.manual import PAGES, text
from archsim.device.spec import keys
from archsim.site import pages
from archsim.site.build import MADE, MARK, SECTIONS, build, sources
from tests.each import each

ROOT = Path(__file__).parents[2]
MANUAL = {name: text(name) for name in PAGES}
FOUND = sources(MANUAL, PAGES, group, ROOT)
LINK = re.compile(r"\]\(([^)#\s]+\.md)\)")
MENU = re.compile(r"```\{toctree\}\n(?::.*\n)*\n((?:.+\n)+?)```")


def menu_of(name: str) -> list[str]:
    """Places of the pages that a page lists below itself."""
    folder = posixpath.dirname(name)
    return [posixpath.normpath(posixpath.join(folder, line)) for body in MENU.findall(FOUND[name]) for line in body.split()]


def test_every_page_of_the_manual_has_a_section() -> None:
    named = [name for names in SECTIONS.values() for name in names]
    assert sorted(named) == sorted(PAGES)
    assert set(MADE) <= set(SECTIONS)


def test_every_page_is_reached_from_the_first_and_stands_in_one_menu() -> None:
    seen, ahead = ["index"], ["index"]
    while ahead:
        below = menu_of(ahead.pop())
        seen += below
        ahead += below
    assert sorted(seen) == sorted(FOUND)


@each("name", FOUND)
def test_every_link_leads_to_a_page(name: str) -> None:
    for link in LINK.findall(FOUND[name]):
        assert posixpath.normpath(posixpath.join(posixpath.dirname(name), link.removesuffix(".md"))) in FOUND, link


def test_mentions_of_pages_are_links_outside_of_blocks() -> None:
    manual = {"a": "# A\n\nSee page `b`, `archsim manual b`, `b`.\n\n```sh\narchsim manual b; `b`\n```", "b": "# B"}
    found = sources({**MANUAL, **manual}, PAGES, group, None)["a"]
    assert "See page [b](b.md), [b](b.md), `b`." in found
    assert "archsim manual b; `b`" in found


def test_every_command_has_its_page_with_its_options() -> None:
    for name in COMMANDS:
        assert f"# `archsim {name}`" in FOUND[f"commands/{name}"]
    assert "--memory-clock CLOCK " in FOUND["commands/estimate"]
    assert "archsim estimate --net alexnet --hw tegra_x1\n" in FOUND["commands/estimate"]
    assert "commands/simulate-serve" in FOUND
    assert len({path for path in FOUND if path.startswith("commands/")}) == len(pages.of_commands(group)) + 1


@each("kind", ["gpu", "cpu", "tpu"])
def test_every_key_of_a_spec_is_listed(kind: str) -> None:
    for key, unit, _ in keys(kind):
        assert f"| `{key}` |" in FOUND[f"keys/{kind}"]
        assert unit.doc.strip()


def test_every_term_has_its_equation_and_a_worked_number() -> None:
    for room, _, found in pages.modules():
        page = FOUND[f"terms/{room}"]
        assert page.count("```python\n>>> ") == page.count("\n## ") == len(found)
    assert "\n## `cache_bound`\n" in FOUND["terms/gpu"]
    assert "\nbytes / (B f efficiency), [D, V]\n" in FOUND["terms/gpu"]


def test_without_a_checkout_what_needs_one_is_left_out() -> None:
    found = sources(MANUAL, PAGES, group, None)
    assert "accuracy" not in found
    assert "](accuracy.md)" not in found["index"]


def test_terms_stand_in_the_order_of_their_files() -> None:
    (found,) = [each for room, _, each in pages.modules() if room == "tpu"]
    assert [term.__name__ for term in found] == ["tile_clocks", "compute_bound", "memory_bound", "buffer_bound", "start_gap"]


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    with pytest.raises(InputError, match="is no site that archsim manual wrote"):
        build(tmp_path / "mine", {"index": "# A"})
    with pytest.raises(InputError, match="no folder"):
        build(tmp_path / "none" / "site", {"index": "# A"})


def test_a_page_and_the_site_at_once_are_refused() -> None:
    done = CliRunner().invoke(group, ["manual", "model", "--site", "somewhere"])
    assert done.exit_code == 2
    assert "leave PAGE out" in done.output


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning", "ignore::DeprecationWarning")  # of Sphinx, for MyST
def test_small_sites_are_the_same_each_time_and_warnings_are_errors(tmp_path: Path) -> None:
    pytest.importorskip("furo")
    texts = {"index": "# A\n\n[b](b.md)\n\n```{toctree}\n\nb\n```\n", "b": "# B\n"}
    made = []
    for name in ("one", "two", "two"):
        assert build(tmp_path / name, texts) == 2
        files = [path for path in (tmp_path / name).rglob("*") if path.is_file()]
        made.append({str(path.relative_to(tmp_path / name)): path.read_bytes() for path in files})
    assert made[0] == made[1] == made[2]
    assert {"index.html", "b.html", MARK} <= set(made[0])
    assert not re.search(r'<(?:link|script|img)[^>]*(?:src|href)="https?:', made[0]["index.html"].decode())
    with pytest.raises(RuntimeError, match="nowhere"):
        build(tmp_path / "one", {"index": "# A\n\n[b](nowhere.md)\n"})
    assert (tmp_path / "one" / "b.html").is_file()
