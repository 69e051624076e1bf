"""A page for each command, from what it declares to click."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

from archsim.render.markdown import table
from archsim.site.markdown import contents, fenced, plain

FOLDER = "commands"


def pages(group: click.Group) -> dict[str, str]:
    """Pages by their place in the site: one for each command and subcommand, and their list."""
    known = {"-".join(names): (" ".join(("archsim", *names)), command) for names, command in commands(group)}
    rows = [[f"[`{words}`]({name}.md)", plain(summary(command))] for name, (words, command) in known.items()]
    listed = table(["command", "what it answers"], rows) + "\n" + contents(known, hidden=True)
    root = click.Context(group, **group.context_settings)
    index = f"# Commands\n\nEach prints its own page with `--help`.\n\n{listed}"
    return {f"{FOLDER}/index": index} | {f"{FOLDER}/{name}": _page(root, *one) for name, one in known.items()}


def commands(group: click.Group, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command that a user can type, with the words that lead to it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None or command.hidden:
            continue
        yield (*above, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*above, name))


def summary(command: click.Command) -> str:
    """The first sentence of a command's help."""
    return " ".join(inspect.cleandoc(command.help or "").partition("\n\n")[0].split())


def _page(root: click.Context, words: str, command: click.Command) -> str:
    context = click.Context(command, parent=root, info_name=words)  # click keeps the options of help that it finds first
    usage = fenced(" ".join([words, *command.collect_usage_pieces(context)]))
    return f"# `{words}`\n\n{_prose(command.help or '')}\n{usage}\n{_options(command, context)}"


def _prose(text: str) -> str:
    """Paragraphs as click takes them; one that begins with backspace keeps its lines, and its examples become a block."""
    parts = []
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        if not paragraph.startswith("\b"):
            parts.append(plain(paragraph) + "\n")
            continue
        first, *others = paragraph.removeprefix("\b").strip("\n").split("\n")
        titled = first.strip() == "Examples:"
        body = inspect.cleandoc("\n".join(others if titled else [first, *others]))
        parts.append("Examples:\n\n" + fenced(body, "sh") if titled else fenced(body))
    return "\n".join(parts)


def _options(command: click.Command, context: click.Context) -> str:
    rows = []
    for option in command.get_params(context):
        record = option.get_help_record(context) if isinstance(option, click.Option) else None
        if record:
            rows.append([f"`{record[0]}`".replace("|", "\\|"), plain(record[1])])
    return "## Options\n\n" + table(["option", "meaning"], rows) if rows else ""
