"""Every loader refuses what is larger, deeper or more than its row of the table of limits, and files that inflate without end."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from archsim.base import files, schema
from archsim.base.errors import InputError
from archsim.base.files import GZIP_RATIO, LIMITS
from archsim.calibration.constants import load as calibration
from archsim.device.catalog import find as device
from archsim.estimation.power import powers_of_file
from archsim.evidence.readers import read_files
from archsim.evidence.table import read_table
from archsim.node.spec import find as node
from archsim.simulate.requests import recorded_arrivals as arrivals
from archsim.stack.catalog import find as stack
from archsim.study.file import load as study
from archsim.study.price import read_prices
from archsim.trace import load as network

ROOT = Path(__file__).parents[2]


def measurements(path: str) -> Any:
    return read_files([path])


def prices(path: str) -> Any:
    return read_prices(path, str)


TOML: dict[str, Callable[[str], Any]] = {
    "device": device, "node": node, "stack": stack, "calibration": calibration, "study": study,
}  # fmt: skip
TEXT = TOML | {"network": network, "measurements": measurements, "prices": prices, "arrivals": arrivals}


def refused(load: Callable[[str], Any], place: Path, match: str) -> None:
    with pytest.raises(InputError, match=match) as caught:
        load(f"{place.parent}/{place.name}")
    assert place.name in str(caught.value)


@pytest.mark.parametrize("kind", TEXT)
def test_a_file_that_is_too_large_is_not_read_to_its_end(kind: str, tmp_path: Path) -> None:
    ending = ".jsonl" if kind == "network" else ".toml" if kind in TOML else ".csv"
    place = tmp_path / f"large{ending}"
    with place.open("wb") as stream:
        stream.write(b"# ")
        stream.truncate(LIMITS[kind].size + 1)  # a file with a hole takes no disk
    refused(TEXT[kind], place, f"is larger than {LIMITS[kind].size} bytes")


@pytest.mark.parametrize("kind", TOML)
def test_a_file_that_is_nested_too_deeply_is_refused(kind: str, tmp_path: Path) -> None:
    place = tmp_path / "deep.toml"
    for levels in (LIMITS[kind].depth, 5000):
        place.write_text(f"schema = 1\na = {'[' * levels}{']' * levels}\n")
        refused(TOML[kind], place, f"is nested deeper than {LIMITS[kind].depth} levels")


@pytest.mark.parametrize("kind", TOML)
def test_a_file_with_too_many_entries_is_refused(kind: str, tmp_path: Path) -> None:
    place = tmp_path / "many.toml"
    place.write_text(f"schema = 1\na = [{'1,' * LIMITS[kind].entries}]\n")
    refused(TOML[kind], place, f"has more than {LIMITS[kind].entries:,} entries")


@pytest.mark.parametrize("kind", TOML)
def test_a_key_with_thousands_of_dots_is_refused(kind: str, tmp_path: Path) -> None:
    place = tmp_path / "dots.toml"
    place.write_text(f"schema = 1\n{'a.' * 20_000}a = 1\n")
    refused(TOML[kind], place, "line 2: a key with more than 16 dots")


@pytest.mark.parametrize("kind", ["measurements", "prices", "arrivals"])
def test_a_table_with_too_many_rows_is_refused(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = replace(LIMITS[kind], entries=3)
    monkeypatch.setitem(files.LIMITS, kind, few)
    place = tmp_path / "many.csv"
    if kind == "arrivals":
        place.write_text("arrival_s\n" + "".join(f"{i}\n" for i in range(5)))
        refused(arrivals, place, "has more than 3 rows")
        return
    place.write_text("a,b\n" + "1,2\n" * 5)
    refused(lambda path: read_table(path, few), place, "has more than 3 rows")


def test_a_file_of_shares_has_a_limit_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(files.LIMITS, "shares", replace(LIMITS["shares"], entries=3))
    place = tmp_path / "many.csv"
    place.write_text("fp32\n" + "0.5\n" * 5)
    refused(lambda path: powers_of_file(path, "titan_xp"), place, "has more than 3 rows")


@pytest.mark.parametrize("kind", ["network", "measurements"])
def test_a_file_that_inflates_without_end_is_refused(kind: str, tmp_path: Path) -> None:
    place = tmp_path / ("bomb.jsonl.gz" if kind == "network" else "bomb.csv.gz")
    place.write_bytes(gzip.compress(b"0" * (2 * GZIP_RATIO * 20_000)))
    refused(TEXT[kind], place, "inflates to more than")


def test_the_threat_model_names_every_kind_of_file() -> None:
    table = (ROOT / "SECURITY.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| (\w+) \| [^|]+ \| ([^|]+) \|", table, re.M))
    for kind, limit in LIMITS.items():
        if kind in ("sweep", "silicon", "sources"):
            continue  # streamed; shipped only
        said = f"{limit.size >> 20} MiB" if limit.size >= files.MIB else f"{limit.size >> 10} KiB"
        assert said in rows[kind], kind
        assert f"{limit.entries:,}" in rows[kind], kind


def test_what_is_within_the_limits_is_read() -> None:
    assert schema.parsed("a = [[1]]\nb = 2\n", "x", "device") == {"a": [[1]], "b": 2}
