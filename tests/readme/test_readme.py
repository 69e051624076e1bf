"""The README and the manual have the form of what the program prints now, and their commands and files work."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys

import pytest

from archsim.cli.main import COMMANDS, group
from archsim.cli.manual import PAGES, text
from archsim.cost.bounds import BOUNDS
from archsim.detect.catalog import find
from archsim.trace.file import load
from tests.each import each
from tests.readme import regenerate
from tests.readme.form import NUMBER, blocks, differences, form
from tests.readme.shell import reading_once, run

ROOT = regenerate.ROOT
SOURCES = {path.name: path.read_text("utf-8") for path in regenerate.PAGES}
README = SOURCES["README.md"]
GENERATED = [name for name, page in SOURCES.items() if regenerate.GENERATED.search(page)]


@pytest.mark.parametrize("name", GENERATED)
def test_a_page_has_the_form_of_what_its_commands_print(name):
    for part in regenerate.parts(SOURCES[name]):
        assert differences(part.shown, part.now) == [], f"{part.what}: run python tests/readme/regenerate.py"


def test_every_output_stands_behind_its_command():
    for page in SOURCES.values():
        assert len(re.findall(r"```sh\n[^`]*?\n```\n\n```text\n", page)) == page.count("```text\n")


BLOCKS = [block for page in SOURCES.values() for found in regenerate.GENERATED.finditer(page)
          for block in blocks(found["output"] or found["rows"])]  # fmt: skip


@each("block", BLOCKS)
def test_other_digits_have_the_form_of_a_page(block):
    other = NUMBER.sub(lambda number: number[0].translate(str.maketrans("0123456789", "1234567890")), block)
    assert form(other) == form(block)


@each("block", BLOCKS)
def test_another_word_in_a_page_and_a_line_less_are_noticed(block):
    for line in block.splitlines():
        words = [word for word in re.findall(r"(?<!\S)[a-z][a-z_]{3}\w*(?!\S)", line) if word not in BOUNDS]
        if words and form(line):
            assert form(block.replace(line, line.replace(words[-1], "x" * len(words[-1])), 1)) != form(block), line
            assert form(block.replace(line, "", 1)) != form(block), line


TABLE = """\
device     limited by     time     memory  measured
---------  ----------  -------  ---------  --------
gtx_1080      compute  9.93 ms    1.32 GB         -
tesla_k40        dram    24 ms  64.9 kB         yes
"""


@each(("shown", "printed", "same"), [
    ("latency  9.9 ms", "latency         10.31 us", True),
    ("latency  9.9 ms", "delay  9.9 ms", False),
    ("latency  9.9 ms", "latency  9.9 mJ", False),
    ("latency  9.9 ms (-2 %)", "latency  1,009.9 ms (+13.5 %)", True),
    ("conv1 of gtx_1080, fp32", "conv2 of gtx_1080, fp32", False),
    ("conv1 of gtx_1080, fp32", "conv1 of gtx_1070, fp32", False),
    ("conv1 of gtx_1080, fp32", "conv1 of gtx_1080, fp16", False),
    ("version 0.1.0", "version 0.1.1", False),
    ("limited by  dram: 20 % faster saves 8.0 %; compute 5 %, l2 1 %", "limited by  l2: 20 % faster saves 8.0 %", True),
    ("limited by  dram: 20 % faster saves 8.0 %", "limited by  nothing: 20 % faster saves 8.0 %", False),
    ("memory-bound to latency-bound: relu1, fc6", "compute-bound to idle: fc7", True),
    ("one\n\ntwo", "one\ntwo", False),
    ("one 1\ntwo 2", "two 3\none 4", True),
    ("one 1\ntwo 2", "one 1", False),
    (TABLE, TABLE.replace("compute", "     l2").replace("9.93 ms", "12.4 us").replace("-\n", "12 ms\n", 1), False),
    (TABLE, TABLE.replace("compute", "     l2").replace("9.93 ms", "12.4 us"), True),
    (TABLE, "\n".join([*TABLE.splitlines()[:2], *TABLE.splitlines()[:1:-1]]), True),
    (TABLE, "\n".join(TABLE.splitlines()[:3]), False),
    (TABLE, TABLE.replace("tesla_k40", "gtx_1080 "), False),
    (TABLE, TABLE.replace("64.9 kB", " 64.9 W"), False),
    (TABLE, TABLE.replace("  measured", "  MEASURED"), False),
])  # fmt: skip
def test_forms_are_told_apart(shown, printed, same):
    assert (differences(shown, printed) == []) is same


@each("line", [
    "archsim estimate --net nothing --hw tegra_x1",
    "archsim search --net alexnet --hw tegra_x1 --vary sm.count=1,2 --where 'power < 1mW'",
])  # fmt: skip
def test_a_command_that_fails_is_noticed(line):
    with pytest.raises(RuntimeError, match="exit code"):
        regenerate.printed(line)


def test_other_digits_are_stale_and_regenerated():
    old = "<!-- accuracy: begin -->\n| 0 % |\n<!-- accuracy: end -->\n```sh\narchsim list stacks\n```\n\n```text\nnone\n```\n"
    assert regenerate.stale(old) == ["accuracy", "archsim list stacks"]
    new = regenerate.up_to_date(old)
    assert regenerate.stale(new) == []
    assert "time of a network on a GPU" in new
    assert "caffe-native" in new


def test_a_device_stands_in_the_table_with_what_is_assumed_of_it():
    spec = find("tegra_x1")
    row = next(line for line in regenerate.devices().splitlines() if line.startswith("| `tegra_x1` "))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert int(cells[-3]) + int(cells[-2]) == len(spec.assumed)
    assert int(cells[-1].replace(",", "")) == regenerate.published_rows()["tegra_x1"] > 0


def words_of(picture: str) -> str:
    """The words of a picture, a line each, without the bounds of its legend."""
    return "\n".join(words for words in re.findall(r">([^<]+)<", picture) if words not in BOUNDS)


@each("place", regenerate.PICTURES)
def test_a_picture_has_the_words_of_what_the_program_draws(place):
    shown, drawn = (words_of(picture) for picture in (place.read_text("utf-8"), regenerate.PICTURES[place]()))
    assert differences(shown, drawn) == [], "run python tests/readme/regenerate.py"


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
    assert {f"{page}.md" for page in PAGES} == {path.name for path in regenerate.MANUAL.glob("*.md")}
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
        from archsim.cli.simulate import serve_llm_command as command
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
    monkeypatch.setattr("archsim.trace.kinds.general.OWN", {})
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
            with reading_once():
                exec(body, {})
    assert "conv1" in capsys.readouterr().out


def in_this_process(words, **_):
    """As `subprocess.run` of `python -m archsim ...`, without a start for each of the many that a lab asks for."""
    assert words[:3] == [sys.executable, "-m", "archsim"]
    done = run(words[3:], ".")
    return subprocess.CompletedProcess(words, done.code, done.out, done.err)


@pytest.mark.slow
@each("name", [name for name in SOURCES if name.startswith("lab-")])
def test_the_answers_of_a_lab_hold(capsys, monkeypatch, name):
    monkeypatch.setattr(subprocess, "run", in_this_process)
    (body,) = re.findall(r"```python\n(.*?)```", SOURCES[name], re.S)
    exec(compile(body, name, "exec"), {})
    assert re.match(r"lab \d: all right", capsys.readouterr().out)


def test_the_manual_names_every_json_key_of_an_estimate():
    found = json.loads(regenerate.printed("archsim estimate --net alexnet --hw tegra_x1 --json"))
    table = re.search(r"\| `network.*?(?=\n\n)", SOURCES["formats.md"], re.S)[0]
    named = {key for group in re.findall(r"`([a-z_ ]+)`", table) for key in group.split()}
    nested = {*found["ops"][0], *found["ops"][0]["kernels"][0], *found["references"][0]}
    assert set(found) - {"schema"} <= named
    assert named <= {*found, *nested}
