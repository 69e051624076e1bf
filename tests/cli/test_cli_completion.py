"""What a shell completes: commands, options, and the names of everything that is shipped; quickly."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from archsim.cli.main import group
from archsim.cli.manual import SHELLS, VARIABLE
from archsim.detect.catalog import names as devices
from archsim.node.spec import names as nodes
from archsim.stack.catalog import names as stacks
from archsim.study.names import names_of
from archsim.trace.file import names as networks
from tests.each import each

CLASSES: dict[str, type[ShellComplete]] = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}


def completed(line: str, shell: str = "bash") -> list[str]:
    """What the shell offers at the end of a line."""
    *words, begun = line.split(" ")
    found = CLASSES[shell](group, {}, "archsim", VARIABLE).get_completions(words, begun)
    return [item.value for item in found if item.type == "plain"]


LINES = {
    "est": ["estimate"],
    "simulate tr": ["train"],
    "estimate --pre": ["--precision"],
    "estimate --net alexnet_": ["alexnet_owt", "alexnet_r", "alexnet_r@caffe", "alexnet_r@torch7-cpu", "alexnet_s",
                                "alexnet_s@caffe", "alexnet_s@mxnet", "alexnet_s@tensorflow"],
    "estimate --hw gtx_108": ["gtx_1080", "gtx_1080_ti"],
    "estimate --hw GTX-108": ["gtx_1080", "gtx_1080_ti"],
    "estimate --net alexnet --hw ho": ["host"],
    "compare --hw gtx_1080,gtx_108": ["gtx_1080,gtx_1080_ti"],
    "compare --hw al": ["all", "allwinner_h616"],
    "estimate --stack caffe-cudnn": ["caffe-cudnn4", "caffe-cudnn5.1", "caffe-cudnn7.1"],
    "estimate --precision f": ["fp64", "fp32", "fp16", "fp8"],
    "estimate --task tr": ["training_step"],
    "estimate --fidelity a": ["analytical"],
    "estimate --set memory.b": ["memory.bandwidth=", "memory.bus="],
    "sweep --vary se": ["seq_len="],
    "sweep --vary precision=fp1": ["precision=fp16"],
    "whatif --to hw=gtx_108": ["hw=gtx_1080", "hw=gtx_1080_ti"],
    "show hw tegra_x1": ["tegra_x1", "tegra_x1_cpu"],
    "show stack caffe-o": ["caffe-openblas"],
    "show calibration x": [],
    "manual pow": ["power"],
    "validate --net vgg_a,vgg_13": ["vgg_a,vgg_13", "vgg_a,vgg_13_bn"],
}  # fmt: skip


@each(("line", "offered"), LINES.items())
def test_a_shell_offers_what_begins_so(line, offered):
    assert completed(line) == offered


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_gets_its_script_and_its_answers(cli, shell):
    script = cli("completion", shell).out
    assert f"{VARIABLE}={shell}_complete" in script
    assert "archsim" in script
    assert completed("estimate --hw gtx_108", shell) == ["gtx_1080", "gtx_1080_ti"]


def test_a_path_is_completed_by_the_shell():
    (item,) = BashComplete(group, {}, "archsim", VARIABLE).get_completions(["estimate", "--hw"], "./my")
    assert (item.type, item.value) == ("file", "./my")


def test_the_lists_are_those_of_the_catalogs():
    assert set(names_of("device")) == {*devices(), "host"}
    assert names_of("network") == networks()
    assert set(names_of("stack")) == {*stacks()}
    assert set(names_of("node")) == {*nodes()}


def test_completing_a_name_imports_no_model():
    code = (
        "import sys; from click.shell_completion import BashComplete; from archsim.cli.main import group\n"
        "shell = BashComplete(group, {}, 'archsim', '_ARCHSIM_COMPLETE')\n"
        "for option in ('--net', '--hw', '--stack'): assert len(shell.get_completions(['estimate', option], '')) > 30\n"
        "print([name for name in ('numpy', 'pydantic', 'simpy') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
