"""The commands of the manual, one after the other, as in a container: no home, and a package that cannot be written."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.core_loops import LOOP
from tests.trace.recorded import recorded
from tests.trace.test_torch_reader import small

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
PAGES = {path.name: path.read_text("utf-8") for path in (ROOT / "README.md", *sorted((ROOT / "archsim" / "manual").glob("*.md")))}
PARTS = ("archsim", "hwspecs", "traces", "reports", "README.md")
DROP = "--bounding-set=-dac_override,-dac_read_search,-fowner"  # so that permissions hold for root too
LACKEY = "I  04001000,3\n L 1ffeffe7d8,8\n S 1ffeffe7d0,8\n M 0421c7cc,4\n" * 50
SHORTER = {"measure": ["--rounds", "1", "--time-limit", "0s"], "validate": ["--limit", "40"]}  # the same work, less of it
LEFT_OUT = ("--cases", "--cross-validate", "completion", "NAME", "PAGE")  # minutes; text for a shell; a word to fill in
SERVES = ("ui",)  # until it is ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """A package without write permission, an empty folder to work in, and no home."""

    package: Path
    work: Path
    prefix: tuple[str, ...]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": os.environ["PATH"], "HOME": "/proc/nowhere", "PYTHONPATH": str(self.package), "PYTHONDONTWRITEBYTECODE": "1",
        }  # fmt: skip
        return subprocess.run([*self.prefix, *words], cwd=self.work, env=environment, capture_output=True, text=True, check=False)

    def archsim(self, words: list[str]) -> subprocess.CompletedProcess[str]:
        return self.run(sys.executable, "-m", "archsim", *words)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
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
    yield place
    for folder, _, _ in os.walk(place):
        Path(folder).chmod(0o755)


@pytest.fixture
def container(package: Path, tmp_path: Path) -> Container:
    prefix: tuple[str, ...] = ()
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root may write everywhere, and there is no setpriv to take that right away")
        prefix = ("setpriv", DROP)
    found = Container(package=package, work=tmp_path, prefix=prefix)
    if found.run("touch", str(package / "archsim" / "x")).returncode == 0 or found.run("true").returncode:
        pytest.skip("the package stays writable here, or rights cannot be taken away")
    (tmp_path / "reports").symlink_to(package / "reports")
    (tmp_path / "prog.lackey").write_text(LACKEY)
    machine = {"cpu": {"vendor_id": "AuthenticAMD", "cpu family": "26", "model": "2"}, "flags": ["avx2", "avx512f"]}
    (tmp_path / "loops.json").write_text(json.dumps({"meta": {"machine": machine}, "loops": [LOOP]}), "utf-8")
    (tmp_path / "result").mkdir()
    blocks = re.findall(r"^```(toml|json|jsonl)\n(.*?)^```", PAGES["own-files.md"], re.M | re.S)
    for kind, text in blocks:
        name = "my_gpu.toml" if kind == "toml" else "config.json" if "model_type" in text else "tiny.jsonl"
        (tmp_path / name).write_text(text, "utf-8")
    page = PAGES["own-model.md"]
    blocks = (re.findall(rf"^```{kind}\n(.*?)^```", page, re.M | re.S)[0] for kind in ("python", "prototxt", "chakra", "config"))
    maker, network, nodes, config = blocks
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "config.json").write_text(config, "utf-8")
    (tmp_path / "deploy.prototxt").write_text(network, "utf-8")
    (tmp_path / "workload.json").write_text(nodes, "utf-8")
    shutil.copy(ROOT / "tests" / "trace" / "profiles" / "torch_cpu_cnn.json", tmp_path / "trace.json")
    (tmp_path / "recorded.json").write_text(recorded(small(4)), "utf-8")
    subprocess.run([sys.executable, "-c", maker], cwd=tmp_path, check=True)
    return found


def write_predictions(place: Path) -> None:
    """What the page about predictors calls a file and a command of predictions, and a row that is sent."""
    (place / "predictions.csv").write_text("id,value\n78cad9bd5ac9,0.118\n", "utf-8")
    (place / "predict.py").write_text("""import json, sys
print("id,value")
for line in sys.stdin:
    print(json.loads(line)["id"], 0.1, sep=",")
""", "utf-8")
    head, row = (ROOT / "reports" / "published" / "networks.csv").read_text("utf-8").splitlines()[:2]
    (place / "mine.csv").write_text(f"{head}\n{row.replace('nvidia_tx1_wp', 'mine')}\n", "utf-8")


def commands(page: str) -> list[list[str]]:
    """The command lines of a page, as words behind `archsim`, in their order."""
    lines = re.findall(r"^(?:    )?(?:\.venv/bin/)?archsim (.+)$", page.replace("\\\n", " "), re.M)
    lines += re.findall(r"^\|.*`archsim ([a-z][^`]+)`", page, re.M)  # a table of questions and commands
    found = [shlex.split(line, comments=True) for line in lines if not any(word in line for word in LEFT_OUT)]
    found = [words for words in found if words[0] not in SERVES]
    return [["result" if word == "/tmp/result" else word for word in words] + SHORTER.get(words[0], []) for words in found]


@pytest.mark.parametrize("name", [name for name, page in PAGES.items() if commands(page)])
def test_the_commands_of_a_page_work_in_a_container(container: Container, name: str) -> None:
    if name == "measure.md":
        pytest.importorskip("onnxruntime")
    if name == "validation.md":  # which goes on where the page about measuring ended
        pytest.importorskip("onnxruntime")
        for words in commands(PAGES["measure.md"])[1:2]:
            assert container.archsim(words).returncode == 0
    if name == "predictors.md":
        write_predictions(container.work)
    failed = []
    for words in commands(PAGES[name]):
        device = (container.work / "mine.toml").read_bytes() if (container.work / "mine.toml").exists() else b""
        done = container.archsim(words)
        if done.returncode not in ((0, 1) if words[0] == "calibrate" else (0,)):
            failed.append(f"archsim {shlex.join(words)}: {done.returncode} {done.stderr[-400:]}")
        if device and (container.work / "mine.toml").read_bytes() != device:
            failed.append(f"archsim {shlex.join(words)} changed the device that was measured")
    assert not failed, "\n".join(failed)
    assert not list(container.work.rglob(".archsim-*"))


def test_a_command_that_writes_into_the_package_would_fail(container: Container) -> None:
    place = container.package / "archsim" / "x.html"
    done = container.archsim(["estimate", "--net", "alexnet", "--hw", "tegra_x1", "--html", str(place)])
    assert done.returncode == 65
    assert "cannot be written (Permission denied)" in done.stderr


def test_compiled_loops_need_no_folder_for_their_code(container: Container) -> None:
    pytest.importorskip("numba")
    done = container.archsim(["cache", "--hw", "i7_6700k", "--trace", "prog.lackey", "--json"])
    assert done.returncode == 0, done.stderr
