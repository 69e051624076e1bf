"""Estimates that the tests of reports share, each made once."""

from __future__ import annotations

from dataclasses import replace

import pytest

import archsim
from archsim.device import catalog
from archsim.device.spec import Spec
from archsim.estimation.estimate import estimate
from archsim.estimation.result import Estimate

NASTY = '<script>alert("1")</script> & </title>\x07'


@pytest.fixture(scope="session")
def alexnet() -> Estimate:
    return archsim.estimate("alexnet", "tegra_x1")


@pytest.fixture(scope="session")
def training() -> Estimate:
    return estimate("resnet_200", "gtx_1080", batch=8, task="training_step")


@pytest.fixture(scope="session")
def tegra() -> Spec:
    return catalog.find("tegra_x1")


@pytest.fixture(scope="session")
def nasty(alexnet: Estimate) -> Estimate:
    """An estimate whose every word from a file is an attack."""
    kernels = tuple(replace(kernel, name=NASTY, algorithm=NASTY) for kernel in alexnet.ops[0].kernels)
    first = replace(alexnet.ops[0], name=NASTY, kind=NASTY, phase=NASTY, bound=NASTY, kernels=kernels)
    references = tuple(replace(r, source=NASTY, stack=NASTY, conditions=(NASTY,)) for r in alexnet.references)
    return replace(
        alexnet, network=NASTY, stack=NASTY, interval_class=NASTY, ops=(first, *alexnet.ops[1:]), references=references,
        breakdown_s={**alexnet.breakdown_s, NASTY: 1e-3}, warnings=(NASTY,), assumptions=(NASTY,),
        provenance={NASTY: NASTY},
    )  # fmt: skip


@pytest.fixture(scope="session")
def nasty_spec(tegra: Spec) -> Spec:
    """A spec whose name and notes are attacks."""
    entries = {key: replace(entry, note=NASTY, written=NASTY) for key, entry in tegra.entries.items()}
    return replace(tegra, identity=replace(tegra.identity, name=NASTY), entries=entries)
