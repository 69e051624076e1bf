"""The parts of `archsim validate` that concern other people's predictors: cases for them, and their score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from archsim.base.writer import OutputFile, OutputKind
from archsim.cli.output import AnswerForm, output, write, write_page

if TYPE_CHECKING:
    from archsim.evidence.case import Case, Skip
    from archsim.validation.evaluation import ValidationSettings

PUBLISHED = "published"  # a word for --predictor: those that others have published, alone
CASES = OutputKind(name="file of cases", own=lambda text, command: text.startswith('{"id": "'))

CASES_OPTION = output("--cases", CASES, "Only write the rows as JSON lines with their ids, without measured values.")
PREDICTOR = click.option(
    "--predictor", "predictors", multiple=True, metavar="FILE|COMMAND",
    help="Score another predictor: a CSV of id,value, a command that reads --cases and prints such a CSV, or `published`.",
)  # fmt: skip


def refuse_beside(predictors: Sequence[str], cases: OutputFile | None, fold: str | None, without: str) -> None:
    """A predictor of others is scored as it is, and cases are only written."""
    if predictors and (fold or without):
        raise click.UsageError("--predictor scores what is given; --cross-validate and --without are about the model of archsim")
    if cases is not None and predictors:
        raise click.UsageError("--cases only writes the rows, --predictor scores them; give one of them")


def write_cases(cases: Sequence[Case], file: OutputFile) -> None:
    """The cases as JSON lines."""
    from archsim.evidence.identity import case_line

    write(file, "".join(f"{case_line(case)}\n" for case in cases))


def print_scoreboard(
    words: Sequence[str], every: Sequence[Case], cases: Sequence[Case], skips: Sequence[Skip], settings: ValidationSettings,
    data: str, form: AnswerForm, html: OutputFile | None, tell: Callable[[str], None],
) -> None:  # fmt: skip
    """Score the predictors and those of other tools that are published; `every` are the cases before any filter."""
    from dataclasses import replace

    from archsim.answers.scoreboard import sections
    from archsim.evidence.claims import claims
    from archsim.evidence.identity import ID
    from archsim.evidence.shipped import peer_files
    from archsim.validation.predictor import from_file, read_predictors
    from archsim.validation.scoreboard import scoreboard

    known = {case.fields[ID] for case in every}
    given = read_predictors([word for word in words if word != PUBLISHED], cases, known, tell)
    names = {one.name for one in given}
    published = [one for one in (from_file(place, None) for place in peer_files()) if one.name not in names]
    board = scoreboard(cases, skips, [*given, *published], settings, tell)
    board = replace(board, data=data, claims=claims() if PUBLISHED in words else ())
    if html is not None:
        write_page(html, sections(board))
    form.show(board)
