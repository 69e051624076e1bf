"""The only places where a number that decides a time may stand: specs, the calibration, and the structure named here."""

from __future__ import annotations

import ast
from pathlib import Path

from archsim.base.schema import Form
from archsim.evidence.sources import rules, sources
from archsim.stack.key import lines
from archsim.stack.stack import Stack

ROOT = Path(__file__).parents[2]
MODEL = ("cost", "lower", "schedule", "estimation")
PLAIN = {0, 1, 2, 3, 4, -1, 0.5}  # signs, halves, squares, counts of operands

# Named numbers in the code of the model, and what kind of number each is. None is a time, a rate or an efficiency.
STRUCTURE = {
    "cost/cost.py": {"SMOOTH": "exponent", "ASYNCHRONOUS": "exponent"},
    "cost/dispatch.py": {
        "COPIED": "bytes on the bus for a copied one"},
    "cost/occupancy.py": {
        "WIDEST": "bytes of the widest load",
        "WARP": "threads", "REGISTER": "bytes",
    },
    "cost/sm.py": {"STAGES": "stages of a pipeline", "MMA_SIDE": "rows of an instruction",
                   "SOFTMAX_ISSUES": "instructions for a score"},
    "cost/tpu.py": {"SUM_BYTES": "bytes", "OPERANDS": "share of a buffer", "EXP_OPERATIONS": "operations for an exponential",
                    "PREFETCHED": "exponent"},
    "cost/gpu.py": {"WORD": "bytes of a value", "TRIPS": "visits to a cache"},
    "cost/traffic.py": {"PAGE": "bytes", "RESIDENT_SHARE": "share of a cache", "SHAPES": "entries of a cache"},
    "cost/retention.py": {
        "NOTICED": "share of a tensor", "STEPS": "steps of an iteration", "LARGE": "sizes of a cache",
        "UNROLLED": "loads of a thread",
    },
    "cost/blocking.py": {
        "LANE_BITS": "bits", "LANE_BYTES": "bytes", "COLUMN_REGISTERS": "registers", "OPERAND_REGISTERS": "registers",
    },
    "cost/team.py": {"FLAGS": "cache lines"},
    "lower/chains.py": {"MOST_OPS": "of one kernel"},
    "lower/fusion.py": {"ORDER": "of fused ops", "LAST": "of fused ops"},
    "cost/area.py": {"UM2": "unit", "BITS": "bits of a byte"},
    "cost/power.py": {
        "LOADS": "test points of a class of supplies",
        "STEPS": "iterations", "TOLERANCE": "accuracy", "SLOWEST": "share of a clock", "SKIPPED": "share of a clock",
    },
    "cost/switched.py": {"TENSOR_WIDTH": "bytes of operands"},
    "lower/attention.py": {"RECOMPUTED": "products", "BLOCK": "keys that a mask skips together"},
    "lower/context.py": {"SIZED": "bytes of operands", "HALF": "bytes"},
    "lower/conv.py": {"BLOCK": "values of a block that is transposed", "PACK": "channels of a register"},
    "lower/conv_products.py": {"ATOMIC": "bytes", "INDEX": "bytes", "WORD": "bytes"},
    "lower/lower.py": {
        "REQUANTISED": "operations for a value", "UNCACHED": "bytes beyond any cache", "CHANNELS": "axes of a result"},
    "lower/conv_transforms.py": {
        "PATCH": "tiles", "TILED": "side of a tile", "SMALLEST": "side of a transform", "TRANSFORM_FLOP": "additions",
        "WORDS": "results along a side"},
    "lower/gemm.py": {
        "THIN": "rows", "VECTOR": "bytes", "CHOICES": "kernels of an op",
        "ACTIVATION_FLOP": "instructions of a sigmoid",
    },
    "cost/evaluate.py": {"SPEEDUP": "how much faster, in a question"},
    "schedule/events.py": {"CACHED_SOLUTIONS": "entries of a cache", "TIME_TOLERANCE": "accuracy", "TINY": "accuracy"},
    "schedule/streams.py": {"QUEUE": "launches"},
    "lower/pointwise.py": {"OF_ITS_OWN": "kernels of an op", "ROW_THREADS": "threads of a CTA"},
    "schedule/training.py": {"PREFETCH": "batches", "BUCKET_BYTES": "bytes"},
    "estimation/memo.py": {"WAIT_S": "for a lock", "MOST_CLOCKS": "that a file may say"},
    "estimation/memory.py": {"USABLE": "share of a capacity", "STRAIGHT": "steps of a search"},
    "estimation/result.py": {"NEGLIGIBLE": "accuracy"},
    "estimation/pipeline.py": {"ROUNDING": "accuracy"},
    "estimation/wall.py": {"GB": "unit", "BUSY": "cores of a host"},
    "estimation/power_curve.py": {"SENSOR_S": "window of a measurement", "NEGLIGIBLE": "accuracy"},
    "estimation/network.py": {"SHOWN": "names in a sentence"},
    "estimation/fidelity.py": {"NEVER": "later than anything", "NEAR": "of algorithms that compete"},
    "estimation/traffic.py": {"PIPE_BYTES": "bytes of a value"},
    "estimation/power.py": {"COUNTED": "accuracy of counters", "HALVINGS": "steps of a search"},
    "estimation/clock.py": {"ROUNDED": "accuracy of a clock", "FARTHEST": "limit of an argument"},
    "estimation/estimate.py": {"MOST_BUDGET": "limit of an argument", "CLOCKS": "steps of a search", "ROUNDS": "steps of one"},
}  # fmt: skip


def named_numbers(source: str) -> set[str]:
    """Module-level names in capitals whose value holds a number that is not plain."""
    found = set()
    for node in ast.parse(source).body:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        value = getattr(node, "value", None)
        if names and value is not None and any(is_number(part) for part in ast.walk(value)):
            found.update(names)
    return found


def is_number(node: ast.AST) -> bool:
    """Whether a node is a number, of whatever size."""
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool)


def test_named_numbers_of_the_model_are_structure() -> None:
    found = {}
    for room in MODEL:
        for path in sorted((ROOT / "archsim" / room).glob("*.py")):
            name, known = f"{room}/{path.name}", STRUCTURE.get(f"{room}/{path.name}", {})
            if unknown := {each for each in named_numbers(path.read_text("utf-8")) if each.isupper()} - set(known) - TABLES:
                found[name] = unknown
    assert found == {}, "a time, a rate or an efficiency belongs into the calibration or a spec; else say what the number is"


TABLES = {"BOUNDS", "RULES", "ALGORITHMS", "FIDELITIES", "CONDITIONS", "PARTS", "COMPONENTS", "LAUNCH", "FITTED"}


def test_a_named_number_is_noticed() -> None:
    assert named_numbers("CLOCKS_OF_RELU = 3.5\nname = 'x'\nSMALL: float = 1e-3") == {"CLOCKS_OF_RELU", "SMALL"}
    assert named_numbers("NAMES = ('a', 'b')\ndef f():\n    X = 3.5") == set()


def test_functions_of_the_cost_layer_hold_no_number_of_their_own() -> None:
    """Inside functions stand plain numbers and powers of ten of units only; doctests are no code."""
    found = []
    for path in sorted((ROOT / "archsim" / "cost").glob("*.py")):
        for function in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(function, ast.FunctionDef):
                continue
            for node in ast.walk(ast.Module([*function.body], [])):
                if is_number(node) and node.value not in PLAIN | {1e-9, 100.0, 1e-3, 0.25}:  # type: ignore[attr-defined]
                    found.append(f"{path.name}:{node.lineno}: {node.value}")  # type: ignore[attr-defined]
    assert found == []


# Clocks of the host between two steps of a serving engine: facts of one version, whose `basis` and source name the measured runs.
ENGINE_HOST = {f"serving.{name}_clocks" for name in ("step", "sequence")}


def test_numbers_of_a_stack_are_counts_and_sizes() -> None:
    """Keys of a stack that take a number: none of them is a time, but what an engine's scheduler takes of the host."""
    numeric = {line.path for line in lines(Stack) if line.takes.startswith(("number", "whole"))} - ENGINE_HOST
    assert not [path for path in numeric if any(word in path for word in ("clock", "_clk", "_s.", "seconds", "efficiency"))]
    fractions = {line.path.split(".")[0] for line in lines(Stack) if line.takes.startswith("number")}
    assert fractions <= {"passes", "optimiser_passes", "loops", "min_rows_per_thread",
                         "max_serial_product", "menus", "conv", "serving", "attention"}  # fmt: skip


def test_a_source_states_conditions_and_no_scale_of_a_time() -> None:
    numbers = {key for source in sources() for rule in rules(source) for key, value in rule.set.items() if holds_number(value)}
    assert numbers == {"clock_mhz", "tokens", "per_sample", "meter", "loop", "calls"}


def holds_number(value: object) -> bool:
    """Whether a value of a file is a number, or holds one."""
    if isinstance(value, Form):
        value = value.model_dump(exclude_defaults=True)
    if isinstance(value, dict):
        return any(holds_number(each) for each in value.values())
    return isinstance(value, int | float) and not isinstance(value, bool)
