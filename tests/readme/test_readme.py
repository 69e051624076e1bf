"""The README shows what the program does now, and its commands are the ones that are checked."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@pytest.fixture(scope="module")
def regenerate():
    spec = importlib.util.spec_from_file_location("readme_regenerate", HERE / "regenerate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_output_in_the_readme_is_what_its_commands_print(regenerate):
    readme = (ROOT / "README.md").read_text("utf-8")
    assert regenerate.with_output(readme) == readme, "run python tests/readme/regenerate.py"
    assert len(regenerate.SHOWN.findall(readme)) == readme.count("```text\n")  # every output stands behind its command


def test_a_stale_output_would_be_noticed(regenerate):
    stale = "```sh\narchsim list stacks\n```\n\n```text\nnone\n```\n"
    assert "caffe-native" in regenerate.with_output(stale)


def test_the_picture_is_what_the_program_draws(regenerate):
    assert regenerate.PICTURE.read_text("utf-8") == regenerate.picture(), "run python tests/readme/regenerate.py"


def test_the_first_two_sh_blocks_are_one_line_each():
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / "README.md").read_text("utf-8"), re.M | re.S)
    assert len(blocks) >= 2
    assert all(block.count("\n") == 1 for block in blocks[:2])
    assert "archsim estimate --net alexnet --hw tegra_x1" in blocks[0]
    assert "pytest" in blocks[1]


def test_every_link_in_the_readme_leads_somewhere():
    targets = re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text("utf-8"))
    assert targets
    assert not [target for target in targets if not target.startswith("http") and not (ROOT / target).exists()]
