"""Systolic arrays, tile by tile, against SCALE-Sim and by hand."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from archsim.base.errors import ArgumentError
from archsim.cycle.systolic import DATAFLOWS, MOST_TILES, ArrayMachine, TileProgram, product_program, run
from tests.each import each

RECORDED = Path(__file__).parent / "data" / "scalesim.csv"
ROWS = list(csv.DictReader(line for line in RECORDED.read_text("utf-8").splitlines() if not line.startswith("#")))


@each("row", ROWS)
def test_the_cycles_of_scalesim_are_met_to_one_clock(row: dict[str, str]) -> None:
    rows, columns = int(row["rows"]), int(row["columns"])
    program = product_program(int(row["m"]), int(row["n"]), int(row["k"]), rows, columns, row["dataflow"])
    clocks = run(program, ArrayMachine(rows=rows, columns=columns)).clocks
    assert abs(clocks - int(row["cycles"]) - 1) < 1e-6 * clocks  # SCALE-Sim counts the last cycle's index


def test_the_record_has_both_networks_three_sizes_and_all_dataflows() -> None:
    assert {(row["network"], row["rows"], row["dataflow"]) for row in ROWS} == {
        (network, size, flow) for network in ("alexnet", "resnet_50") for size in ("32", "128", "256") for flow in DATAFLOWS
    }


def test_a_second_set_of_weights_hides_the_shift_behind_the_rows() -> None:
    program = TileProgram(tiles=4, columns=1, blocks=(1000.0,))
    one, two = (run(program, ArrayMachine(rows=256, columns=256, weight_sets=sets)).clocks for sets in (1, 2))
    assert one == 4 * (256 + 1000 + 510)
    assert two == 256 + 4 * 1000 + 510


def test_fewer_rows_than_cells_wait_for_the_shift() -> None:
    program = TileProgram(tiles=4, columns=1, blocks=(10.0,))
    assert run(program, ArrayMachine(rows=256, columns=256, weight_sets=2)).clocks == 4 * 256 + 10 + 510


def test_tiles_arrive_no_faster_than_memory_brings_them() -> None:
    program = TileProgram(tiles=8, columns=1, blocks=(200.0,))
    found = run(program, ArrayMachine(rows=256, columns=256, weight_sets=2, queue=4, tile_clk=1348.0))
    assert found.clocks == 8 * 1348 + 256 + 200 + 510
    assert found.active == 1600
    assert found.stalled > 0


def test_a_deeper_queue_is_never_slower_and_evens_out_bursts() -> None:
    program = TileProgram(tiles=1, columns=2, blocks=(4000.0, 100.0))
    times = [run(program, ArrayMachine(rows=256, columns=256, weight_sets=2, queue=depth, tile_clk=1000.0, sums=4096)).clocks
             for depth in (1, 2, 4, 16)]  # fmt: skip
    assert times == sorted(times, reverse=True)
    assert times[0] >= times[-1]


def test_sums_wait_for_the_part_of_the_accumulators_that_is_read() -> None:
    program = TileProgram(tiles=1, columns=6, blocks=(2000.0,))
    alone, apart = (run(program, ArrayMachine(rows=256, columns=256, weight_sets=2, sums=2048, sum_parts=parts)).clocks
                    for parts in (1, 2))  # fmt: skip
    assert apart < alone


def test_a_block_has_no_more_rows_than_the_accumulators() -> None:
    program = product_program(2888, 256, 2304, 256, 256, sums=2048)
    assert program.blocks == (1444.0, 1444.0)
    assert program.loads == 18


def test_what_is_not_simulated_runs_at_the_pace_of_what_is() -> None:
    machine = ArrayMachine(rows=128, columns=128, weight_sets=2)
    few, many = (run(TileProgram(tiles=n, columns=1, blocks=(500.0,)), machine).clocks for n in (MOST_TILES, 2 * MOST_TILES))
    assert many - few == pytest.approx(500.0 * MOST_TILES, rel=1e-9)


def test_an_unknown_dataflow_is_named() -> None:
    with pytest.raises(ArgumentError, match="'rs' is not one of ws, is, os"):
        product_program(1, 1, 1, 8, 8, "rs")
