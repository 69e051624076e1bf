"""The page: complete, harmless, self-contained, and the same each time."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import re
import subprocess
import sys
from base64 import b64decode
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files

import pytest

from archsim.base.units import show, show_capacity
from archsim.cost.bounds import BOUNDS
from archsim.cost.energy import COMPONENTS
from archsim.device import catalog
from archsim.device.spec import Spec
from archsim.estimation.estimate import estimate
from archsim.estimation.result import Estimate
from archsim.report import components_svg
from archsim.report.data import csv_text
from archsim.report.figures import library
from archsim.report.page import page
from archsim.report.palette import SERIES, contrast, ink_on
from archsim.schedule.observer import Recording

LIMIT = 1_000_000  # B
BUNDLE_SHA256 = "99784e3abfb07b142a15e521a439e6d9addceadb3f79553fd24c72774f0649ba"  # plotly.js-basic-dist-min 4.1.1 of npm
SMALL = 100_000  # B, of a page without a chart that zooms
LOADING = ("href", "src", "srcset", "action", "data", "poster", "background", "formaction")


class Reader(HTMLParser):
    """What a browser would see: tags with their attributes, words, and scripts apart."""

    def __init__(self, body: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self._inside = ""
        self.feed(body)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        {"script": self.scripts, "style": self.styles}.get(self._inside, self.words).append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def written(alexnet: Estimate, tegra: Spec) -> str:
    return page(alexnet, tegra)


@pytest.fixture(scope="module")
def read(written: str) -> Reader:
    return Reader(written)


def test_the_heading_says_what_was_asked(read: Reader) -> None:
    assert "alexnet on NVIDIA Tegra X1 (Jetson TX1 module)" in read.text
    assert "inference · batch 1 · fp32 · stack caffe-cudnn4 · 690 MHz · analytical model" in read.text


def test_every_total_is_there(read: Reader, alexnet: Estimate) -> None:
    e = alexnet
    expected = [
        show(e.latency_s, "s"), show(e.latency_interval_s[0], "s", 3), show(e.latency_interval_s[1], "s", 3),
        f"{100 * e.interval_level:.0f} % interval", show(e.throughput_per_s, "img/s"), show(e.power_w, "W", 3),
        show(e.energy_j, "J", 3), f"{e.throughput_per_w:.3g} img/s/W", show(e.memory_bytes, "B", 3),
        f"{show_capacity(e.memory_capacity_bytes)}: fits", show(e.flop, "FLOP"), show(e.dram_bytes, "B"),
        *(show(time, "s") for time in e.breakdown_s.values()), *e.provenance.values(), *e.assumptions,
        *e.assumed_values,
    ]  # fmt: skip
    missing = [words for words in expected if words not in read.text]
    assert not missing


def test_every_op_has_a_row_with_its_time(written: str, alexnet: Estimate) -> None:
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", written)]
    cells = {row[0]: row for row in rows if len(row) == 10}
    assert list(cells) == [op.name for op in alexnet.ops]
    for op in alexnet.ops:
        assert cells[op.name][3] == show(op.time_s, "s", 3)
        assert cells[op.name][9] == show(op.energy_j, "J", 3)


def test_every_reference_stands_beside_its_prediction(read: Reader, alexnet: Estimate) -> None:
    assert alexnet.references
    for reference in alexnet.references:
        unit = {"throughput_per_s": "img/s", "power_w": "W"}[reference.metric]
        values = f"{show(reference.measured, unit)} {show(reference.predicted, unit)} {100 * reference.error:+.1f} %"
        assert values in read.text
        assert reference.source in read.text


def test_what_was_measured_otherwise_stands_in_the_row(read: Reader, alexnet: Estimate, tegra: Spec) -> None:
    assert "what is asked here" in read.text
    other = replace(alexnet.references[0], conditions=("core clock 690 MHz, not 998 MHz", "threads 4, not 8"))
    text = Reader(page(replace(alexnet, references=(other,)), tegra)).text
    assert "core clock 690 MHz, not 998 MHz; threads 4, not 8" in text
    assert "what is asked here" not in text


def test_without_references_the_page_says_so(alexnet: Estimate, tegra: Spec) -> None:
    assert "no published measurement of this case" in page(replace(alexnet, references=()), tegra)


def test_errors_on_held_out_cells_are_told_where_there_are_any(alexnet: Estimate, tegra: Spec) -> None:
    seen = replace(alexnet.held_out, rows=31, median=0.12, p90=0.4)
    text = Reader(page(replace(alexnet, held_out=seen), tegra)).text
    assert "On 31 held-out measurements of this class" in text
    assert "the median error is 12 %, and nine of ten errors are below 40 %" in text
    assert "held-out" not in Reader(page(replace(alexnet, held_out=replace(seen, rows=0)), tegra)).text


def test_a_network_that_does_not_fit_is_told(alexnet: Estimate, tegra: Spec) -> None:
    text = Reader(page(replace(alexnet, memory_capacity_bytes=1e6), tegra)).text
    assert "does not fit" in text
    assert ": fits" not in text


def test_values_that_the_user_set_are_listed(alexnet: Estimate, tegra: Spec) -> None:
    changed = tegra.with_settings({"memory.bandwidth": "51.2 GB/s"})
    assert "set by the user" in page(alexnet, changed)
    assert "set by the user" not in page(alexnet, tegra)


def test_nothing_from_a_file_becomes_a_tag(nasty: Estimate, nasty_spec: Spec, written: str) -> None:
    attacked = page(nasty, nasty_spec)
    seen, calm = Reader(attacked), Reader(written)
    assert '<script>alert("1")</script> & </title>?' in seen.text
    assert len(seen.scripts) == len(calm.scripts)
    assert {tag for tag, _ in seen.tags} == {tag for tag, _ in calm.tags} | {"b"}  # of the word "Warning"
    assert "<script>alert" not in attacked
    assert "\x07" not in attacked.replace(library(), "")


def test_no_attribute_can_be_left_through_a_quote(alexnet: Estimate, tegra: Spec) -> None:
    kernel = replace(alexnet.ops[0].kernels[0], name='" onmouseover="alert(1)')
    first = replace(alexnet.ops[0], name="it's", kernels=(kernel,))
    tags = Reader(page(replace(alexnet, ops=(first, *alexnet.ops[1:])), tegra)).tags
    assert not [name for _, attributes in tags for name in attributes if name.startswith("on")]


def test_the_page_loads_nothing(read: Reader) -> None:
    found = [value or "" for _, attributes in read.tags for name, value in attributes.items() if name in LOADING]
    assert not [value for value in found if not value.startswith("data:text/csv;base64,")]
    assert all("download" in attributes for tag, attributes in read.tags if tag == "a")
    styles = "".join(read.styles)
    assert "url(" not in styles
    assert "@import" not in styles
    policies = [attributes["content"] for _, attributes in read.tags if "http-equiv" in attributes]
    assert [policy.split(";")[0] for policy in policies if policy] == ["default-src 'none'"]


def test_the_library_stands_only_in_a_page_that_needs_it(alexnet: Estimate, tegra: Spec, written: str) -> None:
    assert library() not in written
    assert len(written.encode()) < SMALL
    assert page(alexnet, tegra, Recording()).count(library()) == 1


def test_the_library_is_the_vendored_bundle_with_its_licence() -> None:
    code = gzip.decompress(b64decode(library())).decode()
    assert hashlib.sha256(code.encode()).hexdigest() == BUNDLE_SHA256
    assert "MIT" in files("archsim.report").joinpath("vendor", "LICENSE.plotly").read_text()
    assert len(library()) < 560_000


def test_the_page_is_as_wide_as_its_window(read: Reader) -> None:
    views = [attributes["content"] for _, attributes in read.tags if attributes.get("name") == "viewport"]
    assert views == ["width=device-width, initial-scale=1"]


@pytest.mark.parametrize("colour", sorted({bound.colour for bound in BOUNDS.values()} | set(SERIES)))
def test_words_on_a_colour_can_be_read(colour: str) -> None:
    assert contrast(colour, ink_on(colour)) >= 4.5


def test_the_bars_of_components_add_up_to_the_energy_of_each_layer(alexnet: Estimate, read: Reader) -> None:
    bars = [float(str(attributes["width"])) for tag, attributes in read.tags if tag == "rect"]
    most = max(op.energy_j for op in alexnet.ops)
    full = (components_svg.WIDTH - components_svg.LEFT - components_svg.RIGHT) / most
    assert sum(bars) == pytest.approx(alexnet.energy_j * full, abs=0.05 * len(alexnet.ops) * len(COMPONENTS))
    for name, meaning in COMPONENTS.items():
        assert name in read.text
        assert meaning in read.text


def test_rows_of_csv_have_the_energy_by_component(alexnet: Estimate) -> None:
    rows = list(csv.DictReader(io.StringIO(csv_text(alexnet))))
    for row, op in zip(rows, alexnet.ops, strict=True):
        parts = {name: float(row[f"energy_breakdown_j.{name}"]) for name in COMPONENTS}
        assert parts == dict(op.energy_breakdown_j)
        assert sum(parts.values()) == pytest.approx(float(row["energy_j"]), rel=1e-12)


def test_our_own_parts_name_no_address(written: str) -> None:
    assert "http" not in written.replace(library(), "").replace("http-equiv", "")


def test_equal_estimates_give_equal_pages(alexnet: Estimate, tegra: Spec, written: str) -> None:
    assert page(alexnet, tegra) == written


def test_a_large_training_step_stays_small(training: Estimate) -> None:
    assert len(training.ops) > 1900
    body = page(training, catalog.find("gtx_1080"))
    assert len(body.encode()) < LIMIT
    assert "by kind of layer" in body
    assert "by block" in body
    assert not re.search(r"other \d+ ops", body)


def test_the_spec_of_another_device_is_refused(alexnet: Estimate) -> None:
    with pytest.raises(ValueError, match="gtx_1080"):
        page(alexnet, catalog.find("gtx_1080"))


def test_importing_a_report_does_not_import_plotly() -> None:
    modules = ", ".join(f"archsim.report.{name}" for name in ("page", "figures", "notebook", "roofline_svg"))
    shown = "archsim.estimate('alexnet', 'tegra_x1')._repr_html_()"
    check = f"import sys, archsim, {modules}; {shown}; sys.exit('plotly' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
    check = "import sys, plotly; sys.exit('plotly' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 1


def test_a_sample_of_a_language_model_is_a_sequence() -> None:
    bert = estimate(net="bert_base", hw="a100_sxm4_40gb", precision="fp16", seq_len=64)
    assert " seq/s" in page(bert, catalog.find("a100_sxm4_40gb"))
    assert " img/s" not in page(bert, catalog.find("a100_sxm4_40gb"))
