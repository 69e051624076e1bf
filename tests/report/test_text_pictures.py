"""Pictures of characters: marks stand where their numbers are, and nothing is wider than the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from archsim.device import catalog
from archsim.estimation.estimate import estimate
from archsim.estimation.result import Estimate
from archsim.report.roofline import roof
from archsim.report.text_pictures import LEFT, binned, roofline_text, sparkline


@pytest.fixture(scope="module")
def alexnet_here() -> Estimate:
    return estimate("alexnet", "tegra_x1")


@pytest.mark.parametrize("width", [50, 80, 200])
def test_a_roofline_fits_and_marks_the_ops_by_what_limits_them(alexnet_here: Estimate, width: int) -> None:
    chart = roof(alexnet_here, catalog.find("tegra_x1"))
    picture = roofline_text(chart, width)
    assert picture is not None
    assert max(map(len, picture.lines)) <= max(width, len(picture.lines[0]))
    for (row, column), bound in picture.bounds.items():
        assert picture.lines[row][column] in "123456789·"
        assert bound in {point.bound for point in chart.points}
    (first,) = [(r, c) for (r, c) in picture.bounds if picture.lines[r][c] == "1"]
    assert picture.bounds[first] == chart.points[0].bound
    assert f"1 {chart.points[0].name}" in "\n".join(picture.lines)


def test_more_intensity_is_further_right_and_more_rate_is_higher(alexnet_here: Estimate) -> None:
    chart = roof(alexnet_here, catalog.find("tegra_x1"))
    picture = roofline_text(chart, 100)
    assert picture is not None
    at = {picture.lines[r][c]: (r, c) for r, c in picture.bounds}
    a, b = chart.points[0], next(p for p in chart.points[1:9] if p.intensity > 4 * chart.points[0].intensity)
    other = at[str(chart.points.index(b) + 1)]
    assert other[1] > at["1"][1]
    assert (other[0] < at["1"][0]) == (b.rate > a.rate)


def test_the_roof_rises_with_the_memory_and_is_flat_at_the_peak(alexnet_here: Estimate) -> None:
    picture = roofline_text(roof(alexnet_here, catalog.find("tegra_x1")), 100)
    assert picture is not None
    slope = [(row, line.index("╱")) for row, line in enumerate(picture.lines) if "╱" in line]
    flat = [row for row, line in enumerate(picture.lines) if "───" in line]
    assert len(slope) > 3
    assert [column for _, column in slope] == sorted((column for _, column in slope), reverse=True)
    assert flat == [slope[0][0]]


def test_without_block_signs_all_is_ascii(alexnet_here: Estimate) -> None:
    picture = roofline_text(roof(alexnet_here, catalog.find("tegra_x1")), 80, blocks=False)
    assert picture is not None
    assert "\n".join(picture.lines).isascii()
    assert sparkline([3.0, 1.0, 2.0], blocks=False).isascii()


def test_a_narrow_terminal_has_no_roofline(alexnet_here: Estimate) -> None:
    assert roofline_text(roof(alexnet_here, catalog.find("tegra_x1")), 49) is None
    assert LEFT < 49


def test_a_sparkline_has_its_ends_where_the_values_are() -> None:
    line = sparkline([5.0, 9.0, 1.0])
    assert (line[1], line[2]) == ("█", "▁")
    assert sparkline([2.0, 2.0]) == "▁▁"


def test_bins_keep_the_least_of_their_neighbours() -> None:
    found = list(binned((float(i), float(100 - i)) for i in range(64)))
    assert len(found) == 32
    assert found[0] == (0.0, 99.0)


@pytest.mark.parametrize(("tty", "no_color", "mode", "drawn"), [
    (True, "", (), True), (True, "1", (), False), (False, "", (), False), (True, "", ("--color", "never"), False),
    (False, "", ("--color", "always"), False),
])  # fmt: skip
def test_pictures_are_drawn_on_a_terminal_that_wants_colour_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path,
    tty: bool, no_color: str, mode: tuple[str, ...], drawn: bool,
) -> None:  # fmt: skip
    from archsim.cli.main import main

    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stdout.isatty", lambda: tty, raising=False)
    sweep = ("sweep", "--net", "alexnet", "--hw", "gtx_1080", "--vary", "sm.count=10,20,40", "--out", str(tmp_path / "s.csv"))
    for words, sign in ((("estimate", "--net", "alexnet", "--hw", "tegra_x1"), "roofline: peak"), (sweep, "▁")):
        monkeypatch.setattr("sys.argv", ["archsim", *words, *mode])
        with pytest.raises(SystemExit):
            main()
        assert (sign in capsys.readouterr().out) == drawn
