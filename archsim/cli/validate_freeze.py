"""The parts of `archsim validate` that write the frozen results of the shipped measurements into a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from archsim.base.errors import InputError
from archsim.base.values import parts
from archsim.base.writer import PAGE, OutputFile, json_with
from archsim.cli.output import output_file
from archsim.cli.progress import Progress
from archsim.cli.terminal import note

if TYPE_CHECKING:
    from archsim.calibration.constants import Calibration

CORPUS, SERVED, INDEX = "validation.json", "served.json", "index.html"
CHOSEN = {"freeze": {"freeze", "folds", "calibration"}, "served": {"served", "calibration"}}  # what each may stand beside


def write_frozen(freeze: str | None, served: str | None, folds: str | None, calibration: str | None) -> None:
    """Write what one of `--freeze` and `--served` asks for, and the page of both."""
    from archsim.calibration.constants import default, load

    option = "served" if freeze is None else "freeze"
    _refuse_beside(option, click.get_current_context())
    constants = load(calibration) if calibration else default()
    if freeze is not None:
        _freeze(freeze, folds, constants)
    elif served is not None:
        _served(served, constants)


def _refuse_beside(option: str, context: click.Context) -> None:
    """A frozen result is of all shipped rows, so no option may choose or change rows."""
    given = [name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    wrong = sorted(set(given) - CHOSEN[option])
    if wrong:
        options = {name: f"--{name.replace('_', '-')}" for name in wrong} | {
            "fold": "--cross-validate", "as_json": "--json", "as_csv": "--csv"
        }  # fmt: skip
        listed = ", ".join(options[name] for name in wrong)
        raise click.UsageError(f"--{option} takes all shipped rows; leave {listed} out")


def _freeze(folder: str, folds: str | None, constants: Calibration) -> None:
    """Write validation.json and the page."""
    from archsim.base.version import __version__
    from archsim.evidence.readers import data_hash, read_files
    from archsim.validation.crossvalidate import FOLDS
    from archsim.validation.frozen import as_text, freeze
    from archsim.validation.selection import known_words

    wanted = known_words("fold", parts(folds) if folds else [], list(FOLDS))
    place = _made(folder)
    data, page = _outputs(place, CORPUS, "archsim-validation-summary/")
    with Progress() as tell:
        tell("reading")
        cases, skips = read_files(())
        summary = freeze(cases, skips, constants, data=data_hash(()), version=__version__, folds=wanted,
                         earlier=_text(place / CORPUS), tell=tell)  # fmt: skip
    data.write(as_text(summary))
    _write_page(page, summary, _record(place / SERVED))
    held = ", ".join(sorted(summary["cross_validation"])) or "none"
    note(f"wrote {place / CORPUS} and {place / INDEX}; cross-validated: {held}")


def _served(folder: str, constants: Calibration) -> None:
    """Write served.json, and the page if the summary of the other rows lies beside it."""
    from archsim.validation.frozen import as_text
    from archsim.validation.served import provenance, served_cases, served_summary

    place = _made(folder)
    data, page = _outputs(place, SERVED, "archsim-served/")
    with Progress() as tell:
        tell("reading")
        summary = served_summary(*served_cases(), constants, provenance(constants), tell)
    data.write(as_text(summary))
    beside = _record(place / CORPUS)
    if beside is not None:
        _write_page(page, beside, summary)
    note(f"wrote {place / SERVED}{f' and {place / INDEX}' if beside else ''}")


def _write_page(page: OutputFile, summary: dict[str, Any], served: dict[str, Any] | None) -> None:
    from archsim.answers.corpus import sections
    from archsim.render.html import page as page_of

    page.write(page_of(sections(summary, served)))


def _outputs(place: Path, name: str, schema: str) -> tuple[OutputFile, OutputFile]:
    """The file of numbers and the page, both refused before any work where something else stands in their place."""
    found = output_file(str(place / name), json_with(schema)), output_file(str(place / INDEX), PAGE)
    for output in found:
        output.check()
    return found


def _text(file: Path) -> str:
    """The text of a file, empty where there is none."""
    try:
        return file.read_text("utf-8") if file.exists() else ""
    except (OSError, ValueError) as error:
        raise InputError(str(file), f"cannot be read ({error})") from None


def _record(file: Path) -> dict[str, Any] | None:
    """A result that lies there already, None where there is none."""
    text = _text(file)
    if not text:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(str(file), f"is no JSON ({error}); delete it, and write it again") from None
    if not isinstance(found, dict):
        raise InputError(str(file), "is no JSON object; delete it, and write it again")
    return found


def _made(folder: str) -> Path:
    if not folder:
        raise click.BadParameter("names no folder")
    place = Path(folder)
    try:
        place.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(folder, f"cannot be made ({error.strerror or error})") from None
    return place
