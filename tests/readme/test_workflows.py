"""The commands of the manual, one after the other, as in a container: no home, and a package that cannot be written.

Those of which a page shows the output run in test_readme. The others run in one process, and one that several pages have runs
once, unless it has to do with a file of its page.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.core_loops import LOOP
from tests.readme import regenerate, shell
from tests.trace.recorded import recorded
from tests.trace.test_torch_reader import small

pytestmark = pytest.mark.slow
ROOT = regenerate.ROOT
PAGES = {path.name: path.read_text("utf-8") for path in regenerate.PAGES}
PARTS = ("archsim", "hwspecs", "traces", "reports", "README.md")
DROP = "--bounding-set=-dac_override,-dac_read_search,-fowner"  # so that permissions hold for root too
LACKEY = "I  04001000,3\n L 1ffeffe7d8,8\n S 1ffeffe7d0,8\n M 0421c7cc,4\n" * 50
SHORTER = {"measure": ["--rounds", "1", "--time-limit", "0s"], "validate": ["--limit", "40"]}  # the same work, less of it
LEFT_OUT = ("--cases", "completion", "NAME", "PAGE")  # minutes; text for a shell; a word to fill in
SERVES = ("ui",)  # until it is ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """A package without write permission and no home; one process in it runs commands, as `shell` does."""

    package: Path
    prefix: tuple[str, ...] = ()
    running: list[subprocess.Popen[str]] = field(default_factory=list)
    done: dict[tuple[str, ...], shell.Outcome] = field(default_factory=dict)  # what commands left

    def start(self, folder: Path, *words: str, **pipes: int) -> subprocess.Popen[str]:
        environment = {
            "PATH": os.environ["PATH"], "HOME": "/proc/nowhere", "PYTHONPATH": str(self.package), "PYTHONDONTWRITEBYTECODE": "1",
        }  # fmt: skip
        return subprocess.Popen([*self.prefix, *words], cwd=folder, env=environment, text=True, **pipes)

    def process(self, folder: Path, *words: str) -> shell.Outcome:
        """Run a command line of its own."""
        with self.start(folder, *words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            out, err = process.communicate()
        return shell.Outcome(code=process.returncode, out=out, err=err)

    def archsim(self, folder: Path, words: list[str]) -> shell.Outcome:
        """Run a command in the one process, which starts with the first."""
        if not self.running:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            self.running.append(self.start(folder, sys.executable, shell.__file__, **pipes))
        own = "--out" in words or any((folder / word).exists() for word in words)
        if own or tuple(words) not in self.done:
            (process,) = self.running
            process.stdin.write(json.dumps({"words": words, "folder": str(folder)}) + "\n")
            process.stdin.flush()
            self.done[tuple(words)] = shell.Outcome(**json.loads(process.stdout.readline()))
        return self.done[tuple(words)]


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Container]:
    place = tmp_path_factory.mktemp("package")
    for name in PARTS:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, place / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, place / name)
    for folder, _, files in os.walk(place):
        for name in ("", *files):
            (Path(folder) / name).chmod(0o555 if name == "" else 0o444)
    prefix: tuple[str, ...] = ()
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root may write everywhere, and there is no setpriv to take that right away")
        prefix = ("setpriv", DROP)
    found = Container(package=place, prefix=prefix)
    if found.process(place, "touch", "archsim/x").code == 0 or found.process(place, "true").code:
        pytest.skip("the package stays writable here, or rights cannot be taken away")
    yield found
    for process in found.running:
        process.communicate()  # its input ends, and so does it
    for folder, _, _ in os.walk(place):
        Path(folder).chmod(0o755)


@pytest.fixture(scope="module")
def prepared(container: Container, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that pages have, or tell the reader to have."""
    place = tmp_path_factory.mktemp("prepared")
    (place / "reports").symlink_to(container.package / "reports")
    (place / "prog.lackey").write_text(LACKEY)
    machine = {"cpu": {"vendor_id": "AuthenticAMD", "cpu family": "26", "model": "2"}, "flags": ["avx2", "avx512f"]}
    (place / "loops.json").write_text(json.dumps({"meta": {"machine": machine}, "loops": [LOOP]}), "utf-8")
    (place / "result").mkdir()
    blocks = re.findall(r"^```(toml|json|jsonl)\n(.*?)^```", PAGES["own-files.md"], re.M | re.S)
    for kind, text in blocks:
        name = "my_gpu.toml" if kind == "toml" else "config.json" if "model_type" in text else "tiny.jsonl"
        (place / name).write_text(text, "utf-8")
    page = PAGES["own-model.md"]
    blocks = (re.findall(rf"^```{kind}\n(.*?)^```", page, re.M | re.S)[0] for kind in ("python", "prototxt", "chakra", "config"))
    maker, network, nodes, config = blocks
    (place / "small").mkdir()
    (place / "small" / "config.json").write_text(config, "utf-8")
    (place / "deploy.prototxt").write_text(network, "utf-8")
    (place / "workload.json").write_text(nodes, "utf-8")
    shutil.copy(ROOT / "tests" / "trace" / "profiles" / "torch_cpu_cnn.json", place / "trace.json")
    (place / "recorded.json").write_text(recorded(small(4)), "utf-8")
    subprocess.run([sys.executable, "-c", maker], cwd=place, check=True)
    return place


@pytest.fixture
def work(prepared: Path, tmp_path: Path) -> Path:
    """A folder of its own with these files."""
    return shutil.copytree(prepared, tmp_path, symlinks=True, dirs_exist_ok=True)


def write_predictions(place: Path) -> None:
    """What the page about predictors calls a file and a command of predictions."""
    (place / "predictions.csv").write_text("id,value\n78cad9bd5ac9,0.118\n", "utf-8")
    (place / "predict.py").write_text("""import json, sys
print("id,value")
for line in sys.stdin:
    print(json.loads(line)["id"], 0.1, sep=",")
""", "utf-8")


def write_measurements(place: Path) -> None:
    """Measurements of one's own: published rows of a card, to which constants may be fitted, under another name."""
    head, *rows = (ROOT / "reports" / "published" / "networks.csv").read_text("utf-8").splitlines()
    rows = [row.replace("jcjohnson", "mine") for row in rows if re.match(r"jcjohnson,\w+,gtx_1080,.*,calibrate,", row)][:2]
    (place / "mine.csv").write_text("\n".join([head, *rows, ""]), "utf-8")


def commands(page: str) -> list[list[str]]:
    """The command lines of a page whose output it does not show, as words behind `archsim`, in their order."""
    page = regenerate.GENERATED.sub("", page).replace("\\\n", " ")
    lines = re.findall(r"^(?:    )?(?:\.venv/bin/)?archsim (.+)$", page, re.M)
    lines += re.findall(r"^\|.*`archsim ([a-z][^`]+)`", page, re.M)  # a table of questions and commands
    found = [shlex.split(line, comments=True) for line in lines if not any(word in line for word in LEFT_OUT)]
    found = [words for words in found if words[0] not in SERVES]
    return [["result" if word == "/tmp/result" else word for word in words] + SHORTER.get(words[0], []) for words in found]


@pytest.mark.parametrize("name", [name for name, page in PAGES.items() if commands(page)])
def test_the_commands_of_a_page_work_in_a_container(container: Container, work: Path, name: str) -> None:
    if name == "measure.md":
        pytest.importorskip("onnxruntime")
    if name in {"predictors.md", "validation.md"}:
        write_predictions(work)
        write_measurements(work)
    failed = []
    for words in commands(PAGES[name]):
        device = (work / "mine.toml").read_bytes() if (work / "mine.toml").exists() else b""
        done = container.archsim(work, words)
        if done.code not in ((0, 1) if words[0] == "calibrate" else (0,)):
            failed.append(f"archsim {shlex.join(words)}: {done.code} {done.err[-400:]}")
        if device and (work / "mine.toml").read_bytes() != device:
            failed.append(f"archsim {shlex.join(words)} changed the device that was measured")
    assert not failed, "\n".join(failed)
    assert not list(work.rglob(".archsim-*"))


def test_a_command_that_writes_into_the_package_would_fail(container: Container, tmp_path: Path) -> None:
    place = container.package / "archsim" / "x.html"
    done = container.archsim(tmp_path, ["estimate", "--net", "alexnet", "--hw", "tegra_x1", "--html", str(place)])
    assert done.code == 65
    assert "cannot be written (Permission denied)" in done.err


def test_compiled_loops_need_no_folder_for_their_code(container: Container, work: Path) -> None:
    pytest.importorskip("numba")
    words = ("cache", "--hw", "i7_6700k", "--trace", "prog.lackey", "--json")
    done = container.process(work, sys.executable, "-m", "archsim", *words)
    assert done.code == 0, done.err
