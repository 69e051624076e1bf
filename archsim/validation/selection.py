"""Which measured rows a validation takes: those of some devices, networks, stacks, sources, splits and metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from archsim.base.errors import UnknownName
from archsim.base.files import is_path
from archsim.calibration.constants import Calibration, default
from archsim.detect.catalog import find as find_device
from archsim.device.catalog import spec_beside
from archsim.estimation.fidelity import FITTED
from archsim.estimation.fidelity import find as find_fidelity
from archsim.estimation.measured import PARTS
from archsim.evidence.case import TEST, WATCHED, Case, Skip
from archsim.evidence.columns import column, known_columns
from archsim.stack.catalog import canonical as exact_stack
from archsim.stack.stack import STACK_KEYS
from archsim.trace.file import canonical as exact_network
from archsim.validation.baseline import BASELINES
from archsim.validation.evaluation import POWER_PARTS, ValidationSettings

CELL = "cell"  # among columns to group by: each row is shown, too
USUAL = ("source", "quantity")
# filter -> column of cases, columns of skipped rows of which the first that is filled counts, what errors call it
PLACES = {
    "hw": ("hardware", ("hardware",), "device"), "net": ("label", ("network", "op"), "network"),
    "stack": ("stack", ("stack",), "stack"), "source": ("source", ("source", "source_id"), "source"),
    "split": ("split", ("split",), "split"), "metric": ("metric", ("metric",), "metric"),
}  # fmt: skip


def device_files(devices: Sequence[str], measurements: Sequence[str]) -> dict[str, str]:
    """Device files by the ids that rows name: those that lie beside measurement files, then those among `devices`."""
    near = [path if "/" in path else f"./{path}" for path in map(spec_beside, measurements) if Path(path).is_file()]
    return {find_device(path).identity.id: path for path in (*near, *filter(is_path, devices))}


def selected_rows(
    cases: list[Case], skips: list[Skip], *, disturbed: bool = False, **values_of: Sequence[str]
) -> tuple[list[Case], list[Skip]]:
    """The cases and skips that have one of the values that are wanted for each of `PLACES`, any where none is given.

    disturbed: whether measurements count that other work disturbed

    Raises UnknownName for a value that no row has.
    """
    for option, (of_case, of_skip, word) in PLACES.items():
        wanted = [_exact(option, value) for value in values_of.get(option, ())]
        if not wanted:
            continue
        values = column(cases, of_case)
        left_out = [next(filter(None, map(skip.fields.get, of_skip)), "") for skip in skips]
        for name in wanted:
            if name not in values and name not in left_out:
                raise UnknownName(word, name, sorted({*values, *left_out} - {""}), hint="no measured row has it")
        cases = [case for case, value in zip(cases, values, strict=True) if value in wanted]
        skips = [skip for skip, value in zip(skips, left_out, strict=True) if value in ("", *wanted)]
    left = [Skip(line=case.line, reason=f"other work took the cores in {case.disturbed}; --disturbed scores it all the same",
                 file=case.file, fields=case.fields) for case in cases if case.disturbed and not disturbed]  # fmt: skip
    return [case for case in cases if disturbed or not case.disturbed], [*skips, *left]


def settings_of(
    cases: Sequence[Case], *, by: Sequence[str] = ("source", "quantity"), fidelity: str = FITTED,
    baseline: Sequence[str] = ("roofline", "constants"), without: Sequence[str] = (), calibration: Calibration | None = None,
) -> ValidationSettings:  # fmt: skip
    """What a validation of these cases compares. Raises UnknownName for a column, fidelity, baseline or part that is none."""
    known = [*known_columns(cases), CELL]
    return ValidationSettings(
        calibration=calibration or default(),
        fidelity=find_fidelity(fidelity).name,
        without=frozenset(known_words("part", without, (*PARTS, *POWER_PARTS, *STACK_KEYS))),
        baselines=tuple(known_words("baseline", [name for name in baseline if name != "none"], BASELINES)),
        by=tuple(known_words("column", [name for name in by if name != CELL] or (USUAL if CELL in by else ["quantity"]), known)),
        cells=CELL in by,
    )


def known_words(what: str, given: Sequence[str], known: Sequence[str] | Mapping[str, object]) -> Sequence[str]:
    """The given words, all of which are known; UnknownName otherwise."""
    for name in given:
        if name not in known:
            raise UnknownName(what, name, list(known), hint=f"one of {', '.join(known)}")
    return given


def _exact(option: str, value: str) -> str:
    """What a device, a network, a stack or a split is called here; what is none, like an op of kernel rows, stays as it is."""
    if option == "hw":
        return find_device(value).identity.id
    if (option, value) == ("split", TEST):
        return WATCHED
    try:
        return {"net": exact_network, "stack": exact_stack}.get(option, str)(value)
    except UnknownName:
        return value
