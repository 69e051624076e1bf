"""What only a process of its own shows: pipes, signals, start-up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from .conftest import heard

ARCHSIM = [sys.executable, "-m", "archsim"]
LONG = ["estimate", "--net", "densenet_201", "--hw", "tegra_x1", "--task", "training_step", "--json"]
EXPLAIN = ["explain", "--net", "alexnet", "--hw", "gtx_1080", "--layer", "conv2", "--equations"]
HEAVY = ("plotly", "scipy", "pandas", "networkx", "simpy", "numba")


@pytest.mark.parametrize("words", [LONG, EXPLAIN, ["--help"]], ids=["long", "explain", "help"])
def test_a_reader_that_has_left_hears_no_noise(words: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(ARCHSIM + words, stdout=write, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(write)
    assert done.stderr == b""
    assert done.returncode == 0


def test_a_closed_output_is_no_defect() -> None:
    with open(os.devnull, "rb") as unwritable:
        done = subprocess.run([*ARCHSIM, "list", "fidelities"], stdout=unwritable, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 65
    assert done.stderr == b"archsim: cannot write the output (Bad file descriptor)\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_full_disk_is_one_line() -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run([*ARCHSIM, "list", "fidelities"], stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 65
    assert done.stderr == b"archsim: cannot write the output (No space left on device)\n"


@pytest.mark.skipif(not hasattr(signal, "SIGINT"), reason="no SIGINT here")
def test_an_interrupt_ends_with_130_and_one_line() -> None:
    code = (
        "import sys, signal, threading, os, time; import archsim.estimation.estimate; "
        "archsim.estimation.estimate.estimate = "
        "lambda *a, **k: (os.kill(os.getpid(), signal.SIGINT), time.sleep(5), print('not interrupted')); "
        "sys.argv = ['archsim', 'estimate', '--net', 'alexnet', '--hw', 'tegra_x1']; "
        "from archsim.cli.main import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, preexec_fn=heard)
    assert done.returncode == 130
    assert done.stderr.strip() == "archsim: interrupted"
    assert done.stdout == ""


def imported(code: str) -> list[str]:
    """The modules that are there when a new process has run `code`."""
    whole = f"import sys\ntry:\n    {code}\nfinally: print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", whole], capture_output=True, text=True, check=True)
    return done.stderr.split()


@pytest.fixture(scope="module")
def for_an_estimate() -> list[str]:
    """The modules that `archsim estimate` needs."""
    words = ["archsim", "estimate", "--net", "alexnet", "--hw", "tegra_x1"]
    return imported(f"from archsim.cli.main import main; sys.argv = {words}; main()")


def heavy(modules: list[str]) -> list[str]:
    return [name for name in HEAVY if name in modules]


def test_importing_the_package_imports_nothing_heavy() -> None:
    modules = imported("import archsim")
    assert heavy(modules) == []
    assert "archsim" in modules


def test_an_estimate_imports_nothing_heavy(for_an_estimate: list[str]) -> None:
    assert heavy(for_an_estimate) == []
    assert "archsim.estimation.estimate" in for_an_estimate


def test_a_heavy_import_would_be_noticed() -> None:
    assert heavy(imported("import simpy")) == ["simpy"]


def test_an_estimate_imports_few_modules(for_an_estimate: list[str]) -> None:
    # Start-up is all imports; their number does not depend on the machine as a time would. `tests/bench/estimates.py` times it.
    # Those of numpy, 86 of version 2 and 107 of version 1.26, are left out, and what Debian's Python imports first.
    ours = [name for name in for_an_estimate if name.partition(".")[0] not in ("numpy", "sitecustomize")]
    assert 100 < len(ours) <= 435


def test_the_module_runs_with_another_locale() -> None:
    environment = os.environ | {"LC_ALL": "C", "PYTHONIOENCODING": "", "PYTHONUTF8": "0"}
    done = subprocess.run([*ARCHSIM, "show", "hw", "tegra_x1"], env=environment, capture_output=True, check=False)
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr
