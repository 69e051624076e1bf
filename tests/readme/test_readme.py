"""The README and the manual show what the program does now, and their commands and files work."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
from pathlib import Path

import pytest

from archsim.cli.main import COMMANDS, group
from archsim.cli.manual import PAGES, text
from archsim.cost.bounds import BOUNDS
from archsim.detect.catalog import find
from archsim.trace.file import load
from tests.each import each

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
README = (ROOT / "README.md").read_text("utf-8")


def regenerate_module():
    spec = importlib.util.spec_from_file_location("readme_regenerate", HERE / "regenerate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


REGENERATE = regenerate_module()
SOURCES = {path.name: path.read_text("utf-8") for path in REGENERATE.PAGES}


@pytest.mark.parametrize("name", SOURCES)
def test_shown_output_is_what_the_command_prints(name):
    page = SOURCES[name]
    assert REGENERATE.up_to_date(page) == page, "run python tests/readme/regenerate.py"
    assert len(REGENERATE.SHOWN.findall(page)) == page.count("```text\n")  # every output stands behind its command


def test_stale_output_is_noticed():
    stale = "```sh\narchsim list stacks\n```\n\n```text\nnone\n```\n"
    assert "caffe-native" in REGENERATE.up_to_date(stale)


def test_a_stale_table_of_accuracy_is_noticed():
    stale = "<!-- accuracy: begin -->\n| 0 % |\n<!-- accuracy: end -->"
    assert "time of a network on a GPU" in REGENERATE.up_to_date(stale)


def test_a_stale_table_of_devices_is_noticed():
    stale = "<!-- devices: begin -->\n| `i7_6700k` |\n<!-- devices: end -->"
    fresh = REGENERATE.up_to_date(stale)
    assert "| `tegra_x1` | NVIDIA Tegra X1" in fresh
    assert fresh != stale


def test_a_device_stands_in_the_table_with_what_is_assumed_of_it():
    spec = find("tegra_x1")
    row = next(line for line in SOURCES["devices.md"].splitlines() if line.startswith("| `tegra_x1` "))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert int(cells[-3]) + int(cells[-2]) == len(spec.assumed)
    assert int(cells[-1].replace(",", "")) == REGENERATE.published_rows()["tegra_x1"] > 0


def test_the_picture_is_what_the_program_draws():
    assert REGENERATE.PICTURE.read_text("utf-8") == REGENERATE.picture(), "run python tests/readme/regenerate.py"


def test_a_stale_table_of_fidelities_is_noticed():
    stale = "<!-- ladder: begin -->\n| 0 % |\n<!-- ladder: end -->"
    assert "| roofline |" in REGENERATE.up_to_date(stale)


def test_the_picture_of_the_fidelities_is_that_of_the_record():
    assert REGENERATE.LADDER_PICTURE.read_text("utf-8") == REGENERATE.ladder_picture(), "run python tests/readme/regenerate.py"


def test_the_first_two_sh_blocks_are_one_line_each():
    blocks = re.findall(r"^```sh\n(.*?)^```", README, re.M | re.S)
    assert len(blocks) >= 2
    assert all(block.count("\n") == 1 for block in blocks[:2])
    assert "archsim estimate --net alexnet --hw tegra_x1" in blocks[0]
    assert "pytest" in blocks[1]


def test_every_link_in_the_readme_leads_somewhere():
    targets = re.findall(r"\]\(([^)#]+)\)", README)
    assert targets
    assert not [target for target in targets if not target.startswith("http") and not (ROOT / target).exists()]


def test_every_file_that_contributing_names_exists():
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    named = set(re.findall(r"`((?:archsim|tests|hwspecs|traces|reports)/[\w./]+)`", page))
    assert len(named) > 20
    assert sorted(path for path in named if not (ROOT / path).exists()) == []


def test_the_manual_lists_every_page():
    assert {f"{page}.md" for page in PAGES} == {path.name for path in REGENERATE.MANUAL.glob("*.md")}
    assert all(text(page).startswith("# ") for page in PAGES)


def test_the_manual_names_every_bound():
    assert [name for name in BOUNDS if name != "none" and name not in SOURCES["model.md"]] == []


def manual_commands(page: str) -> list[list[str]]:
    """The archsim commands of a page: indented lines and sh blocks, as words behind `archsim`."""
    joined = page.replace("\\\n", " ")
    lines = re.findall(r"^(?:    )?(?:\.venv/bin/)?archsim (.+)$", joined, re.M)
    lines += re.findall(r"`archsim ([a-z][^`]*)`", joined)
    return [shlex.split(line) for line in lines if "NAME" not in line]


def unknown_in(words: list[str]) -> str:
    """What of a command line archsim does not know: its command, or an option; empty if it knows all."""
    if words[0] not in COMMANDS:
        return words[0]
    command = group.get_command(None, words[0])
    if words[0] == "simulate" and words[1:]:
        command = command.get_command(None, words[1])
    if "--llm" in words:  # options of its own
        from archsim.cli.simulate_serve_llm import command
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    return next((word for word in words if word.startswith("--") and word.split("=")[0] not in known | {"--help"}), "")


@pytest.mark.parametrize("name", SOURCES)
def test_every_command_of_a_page_exists_with_its_options(name):
    commands = manual_commands(SOURCES[name])
    assert [unknown_in(words) for words in commands] == [""] * len(commands)
    pages = [words[1].rstrip(",") for words in commands if words[0] == "manual" and len(words) > 1 and words[1] != "--site"]
    assert set(pages) <= {*PAGES, "PAGE", "[PAGE]"}


def test_an_unknown_command_or_option_is_noticed():
    assert manual_commands("    archsim guess --net alexnet\n") == [["guess", "--net", "alexnet"]]
    assert unknown_in(["guess"]) == "guess"
    assert unknown_in(["estimate", "--network", "alexnet"]) == "--network"


def test_the_device_and_the_network_of_the_manual_can_be_read(tmp_path):
    page = SOURCES["own-files.md"]
    for language, name, read in (("toml", "my_gpu.toml", find), ("json", "tiny.jsonl", load), ("json", "config.json", load)):
        bodies = re.findall(rf"```{language}\n(.*?)```", page, re.S)
        (body,) = [body for body in bodies if ("model_type" in body) == (name == "config.json")]
        (tmp_path / name).write_text(body)
        read(str(tmp_path / name))


def test_the_page_about_models_runs_from_the_first_model_to_the_last_answer(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("archsim.trace.registry.OWN", {})
    page = SOURCES["own-model.md"]
    blocks = re.findall(r"```python\n(.*?)```", page, re.S)
    assert len(blocks) == 2
    for body in blocks:
        exec(compile(body, "own-model.md", "exec"), {})
    assert float(capsys.readouterr().out) > 0


def test_the_torch_of_the_page_about_models_runs(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    blocks, words = re.findall(r"```py\n(.*?)```", SOURCES["own-model.md"], re.S), {}
    assert len(blocks) == 2
    for body in blocks:
        exec(compile(body, "own-model.md", "exec"), words)


def test_the_python_of_the_manual_runs(capsys):
    for name in ("python.md", "sweep.md"):
        for body in re.findall(r"```python\n(.*?)```", SOURCES[name], re.S):
            exec(body, {})
    assert "conv1" in capsys.readouterr().out


@pytest.mark.slow
@each("name", [name for name in SOURCES if name.startswith("lab-")])
def test_the_answers_of_a_lab_hold(capsys, name):
    (body,) = re.findall(r"```python\n(.*?)```", SOURCES[name], re.S)
    exec(compile(body, name, "exec"), {})
    assert re.match(r"lab \d: all right", capsys.readouterr().out)


def test_the_manual_names_every_json_key_of_an_estimate():
    found = json.loads(REGENERATE.printed("archsim estimate --net alexnet --hw tegra_x1 --json"))
    table = re.search(r"\| `network.*?(?=\n\n)", SOURCES["formats.md"], re.S)[0]
    named = {key for group in re.findall(r"`([a-z_ ]+)`", table) for key in group.split()}
    nested = {*found["ops"][0], *found["ops"][0]["kernels"][0], *found["references"][0]}
    assert set(found) - {"schema"} <= named
    assert named <= {*found, *nested}
