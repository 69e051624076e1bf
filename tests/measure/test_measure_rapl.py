"""Energy counters of processors, in trees that look like /sys/class/powercap."""

from __future__ import annotations

from pathlib import Path

import pytest

from archsim.base.errors import Unsupported
from archsim.measure.timing import MOST_W, counted, package_meter, zones
from tests.each import each


def zone(folder: Path, place: str, name: str, joules: float, most: float = 262143.0) -> Path:
    """A zone with its counter [J]."""
    found = folder / place
    found.mkdir(parents=True, exist_ok=True)
    for file, text in (("name", name), ("energy_uj", f"{joules * 1e6:.0f}"), ("max_energy_range_uj", f"{most * 1e6:.0f}")):
        (found / file).write_text(text + "\n")
    return found


def set_to(place: Path, joules: float) -> None:
    (place / "energy_uj").write_text(f"{joules * 1e6:.0f}\n")


def two_sockets(folder: Path) -> tuple[Path, Path, Path, Path]:
    """Two packages with their cores and memory, and what the kernel shows beside them."""
    (folder / "intel-rapl").mkdir()
    zone(folder, "intel-rapl:2", "psys", 5000.0)  # of the whole platform, packages included
    zone(folder, "intel-rapl-mmio:0", "package-0", 100.0)  # the same counter by another way
    for socket in (0, 1):
        zone(folder, f"intel-rapl:{socket}:1", "core", 50.0)
    return (zone(folder, "intel-rapl:0", "package-0", 100.0), zone(folder, "intel-rapl:1", "package-1", 200.0),
            zone(folder, "intel-rapl:0:0", "dram", 10.0), zone(folder, "intel-rapl:1:0", "dram", 20.0))  # fmt: skip


def test_packages_are_added_once_and_memory_stands_apart(tmp_path: Path) -> None:
    first, second, near, far = two_sockets(tmp_path)
    meter = package_meter(tmp_path)
    assert meter.memory is not None
    read, read_memory = meter.begin(), meter.memory()
    before, memory = read(), read_memory()
    for place, joules in ((first, 107.0), (second, 220.0), (near, 11.0), (far, 22.0)):
        set_to(place, joules)
    assert read() - before == pytest.approx(27.0)
    assert read_memory() - memory == pytest.approx(3.0)
    assert meter.covers == "2 packages, RAPL"


def test_a_counter_that_wraps_is_followed_each_time(tmp_path: Path) -> None:
    place = zone(tmp_path, "intel-rapl:0", "package-0", 900.0, most=1000.0)
    read = counted([place], now=lambda: 0.0)
    before = read()
    for joules, since in ((400.0, 500.0), (300.0, 1400.0), (350.0, 1450.0)):
        set_to(place, joules)
        assert read() - before == pytest.approx(since)


def test_a_counter_that_may_have_wrapped_twice_is_not_believed(tmp_path: Path) -> None:
    place, clock = zone(tmp_path, "intel-rapl:0", "package-0", 900.0, most=2.0 * MOST_W), iter([0.0, 1.9, 4.0])
    read = counted([place], now=lambda: next(clock))
    read()
    with pytest.raises(Unsupported, match="not read for 2 s, in which it may have wrapped"):
        read()


def test_one_package_that_may_not_be_read_leaves_no_energy_of_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, second, *_ = two_sockets(tmp_path)
    refuse(monkeypatch, second / "energy_uj")
    with pytest.raises(Unsupported, match="intel-rapl:1/energy_uj cannot be read by this user"):
        package_meter(tmp_path)


def test_memory_that_may_not_be_read_or_that_one_package_lacks_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    *_, near, far = two_sockets(tmp_path)
    (far / "name").write_text("uncore\n")
    assert package_meter(tmp_path).memory is None
    (far / "name").write_text("dram\n")
    refuse(monkeypatch, near / "energy_uj")
    assert package_meter(tmp_path).memory is None


@each("files", [{"energy_uj": "later"}, {"energy_uj": ""}, {"max_energy_range_uj": "-1"}])
def test_a_counter_that_is_no_number_is_refused(tmp_path: Path, files: dict[str, str]) -> None:
    place = zone(tmp_path, "intel-rapl:0", "package-0", 1.0)
    for file, text in files.items():
        (place / file).write_text(text)
    with pytest.raises(Unsupported, match=f"{next(iter(files))} cannot be read"):
        package_meter(tmp_path)


def test_a_tree_without_packages_says_so(tmp_path: Path) -> None:
    zone(tmp_path, "intel-rapl:0", "psys", 1.0)
    for folder in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(Unsupported, match="lists no package"):
            zones(folder)


def refuse(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    """Let no one read a file, root included."""
    read = Path.read_text

    def read_text(self: Path, *args: str) -> str:
        if self == place:
            raise PermissionError(13, "Permission denied")
        return read(self, *args)

    monkeypatch.setattr(Path, "read_text", read_text)
