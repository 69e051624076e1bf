"""The functions of the package: the words of the command line, units as text, our errors, answers that show themselves."""

from __future__ import annotations

import importlib
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import archsim
from archsim.base.errors import ArchsimError
from tests.each import each

FUNCTIONS = {"compare", "estimate", "power", "sweep", "validate", "whatif"}


def test_the_package_lists_what_it_offers():
    assert set(dir(archsim)) >= FUNCTIONS
    assert all(callable(getattr(archsim, name)) for name in FUNCTIONS)


def test_importing_the_package_imports_no_model():
    code = "import sys, archsim; dir(archsim); print([m for m in sys.modules if m.startswith(('numpy', 'click', 'archsim'))])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "numpy" not in found
    assert "archsim.api" not in found


def test_a_function_stays_one_after_its_subpackages_are_imported():
    importlib.import_module("archsim.validation.evaluation")  # a package called `validate` would take the function's place

    assert all(callable(getattr(archsim, name)) for name in FUNCTIONS)


def test_words_mean_what_they_mean_on_the_command_line(cli):
    words = {"batch": "16", "precision": "FP16", "task": "training", "stack": "Caffe", "clock": "1.2GHz",
             "set": {"memory.bandwidth": "400GB/s"}, "scale": "sm.count=150%"}  # fmt: skip
    found = archsim.estimate("AlexNet", "GTX 1080", **words).to_dict()
    options = ["--batch", "16", "--precision", "FP16", "--task", "training", "--stack", "Caffe", "--clock", "1.2GHz",
               "--set", "memory.bandwidth=400GB/s", "--scale", "sm.count=150%"]  # fmt: skip
    listed = json.loads(cli("estimate", "--net", "AlexNet", "--hw", "GTX 1080", *options, "--json").out)
    assert listed == json.loads(json.dumps(found))


def test_numbers_with_and_without_units():
    exact = archsim.estimate("alexnet", "gtx_1080", clock=1.2e9, power_limit=np.float64(150))
    assert archsim.estimate("alexnet", "gtx_1080", clock="1.2 GHz", power_limit="150W").latency_s == exact.latency_s
    assert archsim.estimate("alexnet", Path("gtx_1080"), batch=np.int64(4)).batch == 4
    usual, twice = (archsim.estimate("alexnet", "gtx_1080", batch=64, set=changed) for changed in ({}, {"sm.count": 40}))
    assert twice.latency_s < usual.latency_s


WRONG = {
    "batch is a word": (lambda: archsim.estimate("alexnet", "gtx_1080", batch="x"), "batch: 'x' is not a whole number"),
    "half a batch": (lambda: archsim.estimate("alexnet", "gtx_1080", batch=1.5), "batch: 1.5"),
    "batch is true": (lambda: archsim.estimate("alexnet", "gtx_1080", batch=True), "batch: True"),
    "batch is a list": (lambda: archsim.estimate("alexnet", "gtx_1080", batch=[1, 2]), r"batch: \[1, 2\]"),
    "endless batch": (lambda: archsim.estimate("alexnet", "gtx_1080", batch=math.inf), "batch: inf"),
    "net is a number": (lambda: archsim.estimate(3, "gtx_1080"), "net: 3 is not a name"),
    "no device": (lambda: archsim.estimate("alexnet", None), "hw: None is not a name"),
    "clock without unit": (lambda: archsim.estimate("alexnet", "gtx_1080", clock="690"), "clock: '690' lacks its unit"),
    "clock of nan": (lambda: archsim.estimate("alexnet", "gtx_1080", clock=math.nan), "clock: 'nan' is not a number"),
    "clock in watts": (lambda: archsim.estimate("alexnet", "gtx_1080", clock="5W"), "clock: '5W' is not in Hz"),
    "limit is a list": (lambda: archsim.estimate("alexnet", "gtx_1080", power_limit=[1]), r"power_limit: \[1\]"),
    "graph is a number": (lambda: archsim.estimate("alexnet", "gtx_1080", graph=1), "graph: 1 is neither True nor False"),
    "precision is a number": (lambda: archsim.estimate("alexnet", "gtx_1080", precision=16), "precision: 16 is not a name"),
    "unknown word": (lambda: archsim.estimate("alexnet", "gtx_1080", batchsize=1), "no argument 'batchsize'; nearest: batch"),
    "an earlier word": (lambda: archsim.estimate("alexnet", "gtx_1080", settings={}), "no argument 'settings'; nearest: set"),
    "set to a list": (lambda: archsim.estimate("alexnet", "gtx_1080", set={"sm.count": [1]}), "set: sm.count"),
    "a pair without value": (lambda: archsim.estimate("alexnet", "gtx_1080", set="sm.count"), "set: 'sm.count' is not KEY=VALUE"),
    "factor of zero": (lambda: archsim.estimate("alexnet", "gtx_1080", scale={"sm.count": 0}), "scale: sm.count: 0"),
    "factor of nan": (lambda: archsim.estimate("alexnet", "gtx_1080", scale={"sm.count": math.nan}), "scale: sm.count: nan"),
    "calibration is a number": (lambda: archsim.estimate("alexnet", "gtx_1080", calibration=3), "calibration: 3"),
    "power without a device": (lambda: archsim.power(None, {"fp32": 1}), "hw: None is not a name"),
    "a share of nan": (lambda: archsim.power("titan_xp", {"fp32": math.nan}), "share of fp32: nan"),
    "shares are a number": (lambda: archsim.power("titan_xp", 0.5), "shares: 0.5"),
    "no shares at all": (lambda: archsim.power("titan_xp", None), "shares: None"),
    "memory clock in watts": (lambda: archsim.power("titan_xp", {}, memory_clock="5W"), "memory_clock: '5W' is not in Hz"),
    "three clocks": (lambda: archsim.power("titan_xp", {}, counted_at=(1, 2, 3)), r"counted_at: \(1, 2, 3\)"),
    "counted at a word": (lambda: archsim.power("titan_xp", {}, counted_at="x"), "counted_at: 'x'"),
    "power of a batch": (lambda: archsim.power("titan_xp", {}, batch=4), "no argument 'batch'"),
    "a clock misspelt": (lambda: archsim.power("titan_xp", {}, memoryclock=1), "nearest: memory_clock"),
    "nothing to compare": (lambda: archsim.compare("alexnet", []), r"hw: \[\] names nothing"),
    "price is a number": (lambda: archsim.compare("alexnet", "gtx_1080", price=3), "price: 3"),
    "duty is true": (lambda: archsim.compare("alexnet", "gtx_1080", duty=True), "duty: True is not a number"),
    "correlation of nan": (lambda: archsim.compare("alexnet", "gtx_1080", correlation=math.nan), "correlation: 'nan'"),
    "correlation above 1": (lambda: archsim.compare("alexnet", "gtx_1080", correlation="120%"), "correlation 1.2"),
    "nothing is changed": (lambda: archsim.whatif("alexnet", "gtx_1080"), "nothing is changed"),
    "changed to what": (lambda: archsim.whatif("alexnet", "gtx_1080", to={"colour": 3}), "no argument 'colour'"),
    "no points": (lambda: archsim.sweep("alexnet", "gtx_1080", sample=0), "sample: 0 is less than 1"),
    "vary is a number": (lambda: archsim.sweep("alexnet", "gtx_1080", vary=3), "vary: 3"),
    "files are a number": (lambda: archsim.validate(3), "measurements: 3"),
    "no rows": (lambda: archsim.validate(limit=0), "limit: 0 is less than 1"),
}


@each("name", WRONG)
def test_a_wrong_value_is_our_error_with_the_argument_and_its_value(name):
    call, said = WRONG[name]
    with pytest.raises(ValueError, match=said) as caught:
        call()
    assert isinstance(caught.value, ArchsimError)


def test_devices_are_compared_as_by_the_command(cli):
    found = archsim.compare("alexnet", ["GTX 1080", "K40"], batch=16)
    listed = json.loads(cli("compare", "--net", "alexnet", "--hw", "GTX 1080,K40", "--batch", "16", "--json").out)
    assert json.loads(json.dumps(found.to_dict())) == listed
    assert [one.name for one in found.contenders] == ["gtx_1080", "tesla_k40"]
    several = archsim.compare(["alexnet", "vgg_16"], "gtx_1080,tesla_k40", batch=4)
    assert [one.network for one in several] == ["alexnet", "vgg_16"]


def test_what_a_buyer_says_has_the_words_of_the_command(cli):
    said = {"price": {"h100": "2.5USD/h"}, "electricity": "0.25USD/kWh", "duty": "50%", "by": "cost"}
    found = archsim.compare("resnet_50", "h100,rtx_4090", **said)
    words = ("--price", "h100=2.5USD/h", "--electricity", "0.25USD/kWh", "--duty", "50%", "--by", "cost")
    listed = json.loads(cli("compare", "--net", "resnet_50", "--hw", "h100,rtx_4090", *words, "--json").out)
    assert json.loads(json.dumps(found.to_dict())) == listed
    trained = archsim.compare("resnet_50", "rtx_4090", samples="1e6", epochs=2, task="training")
    assert (trained.workload.samples, trained.workload.epochs) == (1_000_000, 2)


def test_a_range_of_batches_gives_curves():
    found = archsim.compare("alexnet", "gtx_1080,i7_6700k", batch=[1, 8])
    assert {curve.name: curve.batches for curve in found.curves} == {"gtx_1080": (1, 8), "i7_6700k": (1, 8)}
    assert "batch 8" in found._repr_html_()


def test_a_change_is_that_of_the_command(cli):
    found = archsim.whatif("alexnet", "tegra_x1", set="memory.bandwidth=51.2GB/s", to={"precision": "fp16", "clock": "900MHz"})
    words = ("--set", "memory.bandwidth=51.2GB/s", "--to", "precision=fp16", "--to", "clock=900MHz")
    assert found.to_dict() == json.loads(cli("whatif", "--net", "alexnet", "--hw", "tegra_x1", *words, "--json").out)
    assert found.changes[-1] == "clock = 900 MHz"


def test_a_sweep_has_the_points_of_the_command(cli):
    found = archsim.sweep("alexnet", "gtx_1080", vary={"sm.count": "8:24:8", "batch": [1, 4]}, link="l2.bandwidth=sm.count")
    words = ("--vary", "sm.count=8:24:8", "--vary", "batch=1,4", "--link", "l2.bandwidth=sm.count")
    lines = cli("sweep", "--net", "alexnet", "--hw", "gtx_1080", *words).out.splitlines()
    assert (",".join(found), found.points) == (lines[0], len(lines) - 1)
    place = list(found).index("latency_s")
    assert [str(value) for value in found["latency_s"]] == [line.split(",")[place] for line in lines[1:]]
    assert found.units["latency_s"] == "s"
    assert "6 points" in found._repr_html_()


def test_validation_has_the_rows_of_the_command(cli):
    found = archsim.validate(hw="GTX 1080", net="AlexNet", limit=4, by="network")
    words = ("--hw", "GTX 1080", "--net", "AlexNet", "--limit", "4", "--by", "network", "--json")
    assert json.loads(json.dumps(found.to_dict())) == json.loads(cli("validate", *words).out)
    assert "4 measured values" in found._repr_html_()


def test_powers_by_unit_have_the_words_of_the_command():
    found = archsim.power("Titan Xp", ["fp32=0.8", "sm=90%"], clock="1.4GHz", memory_clock=4e9, counted_at="1.4 GHz,5705 MHz",
                          power_limit=200, scale={"power.idle": 0.5})  # fmt: skip
    assert (found.shares["sm"], found.counted_memory_clock_hz, found.power_limit_w) == (0.9, pytest.approx(5.705e9), 200)
    assert archsim.power("titan_xp", {}).power_w == pytest.approx(73.0)  # idle
    assert archsim.power("titan_xp", {"fp32_active": 0.5}, counted_at=("1GHz", None)).counted_clock_hz == 1e9
    assert "fp32" in found._repr_html_()
    assert "Where the power goes" in found.to_page()


def test_devices_within_a_limit_are_those_of_the_command(cli):
    found = archsim.compare("alexnet", "gtx_1080,i7_6700k", where="latency < 5ms")
    words = ("--net", "alexnet", "--hw", "gtx_1080,i7_6700k", "--where", "latency < 5ms", "--json")
    assert json.loads(json.dumps(found.to_dict())) == json.loads(cli("compare", *words).out)
    assert "GTX 1080" in found._repr_html_()
    with pytest.raises(ArchsimError, match="where finds the batch"):
        archsim.compare("alexnet", "gtx_1080", where="latency < 5ms", batch=4)


def test_a_sweep_of_nothing_but_devices_has_a_page():
    assert "2 points" in archsim.sweep("alexnet", "gtx_1080,tegra_x1").to_page()
