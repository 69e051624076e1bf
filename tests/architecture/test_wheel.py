"""What `pip install .` installs: the wheel holds all data and works from another folder."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DATA = ("hwspecs", "traces/nets", "traces/stacks", "reports/published", "reports/calibration")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    code = "from hatchling.build import build_wheel; import sys; print(build_wheel(sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", code, str(folder)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (path,) = folder.glob("*.whl")
    return path


def data_of(folder: str) -> list[str]:
    return sorted(
        str(path.relative_to(ROOT)) for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts
    )


@pytest.mark.parametrize("folder", DATA)
def test_the_wheel_holds_every_data_file(wheel: Path, folder: str) -> None:
    prefix = "archsim/_data/"
    names = zipfile.ZipFile(wheel).namelist()
    held = sorted(name.removeprefix(prefix) for name in names if name.startswith(f"{prefix}{folder}/"))
    assert held == data_of(folder)
    assert held


def test_the_wheel_holds_every_module_and_page_and_no_tests(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if name.endswith((".py", ".md", "py.typed"))}
    package = {str(path.relative_to(ROOT)) for kind in ("*.py", "manual/*.md") for path in (ROOT / "archsim").rglob(kind)}
    assert names >= package
    assert not [name for name in names if not name.startswith("archsim/")]


def test_the_wheel_works_from_another_folder(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    (tmp_path / "elsewhere").mkdir()
    for words, expected in ((["list", "hw"], "tegra_x1"), (["estimate", "--net", "alexnet", "--hw", "tegra_x1"], "measured"),
                            (["manual", "model"], "# How the model works")):  # fmt: skip
        code = "import sys; sys.path.insert(0, sys.argv.pop(1)); import archsim; from archsim.cli.main import main; main()"
        done = subprocess.run(
            [sys.executable, "-I", "-c", code, str(tmp_path / "site"), *words],
            cwd=tmp_path / "elsewhere", capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert expected in done.stdout
    code = "import sys; sys.path.insert(0, sys.argv[1])\n"
    code += "from archsim.base.files import data_folder; print(data_folder('hwspecs'))"
    words = [sys.executable, "-I", "-c", code, str(tmp_path / "site")]
    place = subprocess.run(words, cwd=tmp_path / "elsewhere", capture_output=True, text=True, check=True)
    assert Path(place.stdout.strip()) == tmp_path / "site" / "archsim" / "_data" / "hwspecs"
