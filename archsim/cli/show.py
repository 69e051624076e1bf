"""`archsim show`."""

from __future__ import annotations

import json
from typing import Any

import click

from archsim.base.arguments import ARGUMENTS
from archsim.cli.output import AnswerForm, answer_forms
from archsim.cli.terminal import show_text
from archsim.cli.vocabulary import Known, option

CATALOGS = {"hw": "device", "node": "node", "net": "network", "stack": "stack"}


def _names(ctx: click.Context, param: click.Parameter, begun: str) -> list[Any]:
    """What a shell completes: names of what was said before."""
    what = CATALOGS.get(ctx.params["what"])
    return Known(what).shell_complete(ctx, param, begun) if what else []


@click.command("show")
@click.argument("what", type=click.Choice([*CATALOGS, "calibration", "silicon", "schema"]))
@click.argument("name", required=False, shell_complete=_names)
@answer_forms(json="Print one JSON object (not of silicon).",
              all="Also print ranges and meanings of the keys of hw, and the release notes of a stack.")  # fmt: skip
@option(ARGUMENTS["bind"], help="Size of a symbol of a network's file (net only).")
@click.option("--toml", "as_toml", is_flag=True, help="Print a whole file to start one of your own from (hw only).")
def command(what: str, name: str | None, form: AnswerForm, bind: dict[str, int] | None, as_toml: bool) -> None:
    """Print a device, node, network or stack, the calibration, the die model, or a JSON Schema, with the source of every number.

    \b
    Examples:
      archsim show hw tegra_x1
      archsim show hw tesla_t4 --toml > mine.toml
      archsim show node dgx_1_v100
      archsim show net alexnet
      archsim show net model.onnx --bind height=224 --bind width=224
      archsim show stack caffe-cudnn4 --json
      archsim show calibration
      archsim show calibration energy.
      archsim show silicon
      archsim show schema estimate
    """
    if as_toml and what != "hw":
        raise click.UsageError(f"show {what} prints no TOML; show hw does")
    if form.json and as_toml:
        raise click.UsageError("--json and --toml both print to standard output; choose one")
    if bind and what != "net":
        raise click.UsageError(f"--bind gives sizes to a network; show {what} has none")
    if what in CATALOGS and name is None:
        raise click.UsageError(f"show {what} needs a name; `archsim list {'hw' if what == 'hw' else what + 's'}` prints them")
    if as_toml:
        from archsim.detect.catalog import find
        from archsim.device.write import to_toml

        spec = find(str(name))
        click.echo(to_toml(spec, f"{spec.identity.name}, every value of it; change id, name and what differs.").rstrip("\n"))
    elif what == "net":
        from archsim.trace.shown import network_of

        shown = network_of(str(name), bind or {})
        form.show(shown)
        shown.raise_refused()
    elif what == "schema" and name is not None:
        from archsim.answers.schemas import schema_of

        click.echo(json.dumps(schema_of(name), indent=1, ensure_ascii=False))
    elif what == "silicon":
        from archsim.answers import silicon

        if form.json:
            raise click.UsageError("show silicon has no JSON form; hwspecs/silicon has its data as TOML")
        show_text(silicon.sections(), form.level)
    else:
        form.show(*_answer(what, name or ""))


def _answer(what: str, name: str) -> tuple[Any, ...]:
    """What is shown, and where its class does not say it the module that does."""
    if what == "stack":
        from archsim.answers import stack
        from archsim.stack.choose import named

        return named(name), stack
    if what == "hw":
        from archsim.detect.catalog import find

        return (find(name),)
    if what == "node":
        from archsim.node.spec import find as find_node

        return (find_node(name),)
    if what == "schema":
        from archsim.answers.listing import Listing
        from archsim.answers.schemas import SCHEMAS

        rows = [(each, f"archsim {SCHEMAS[each][0]} --json") for each in sorted(SCHEMAS)]
        return (Listing(head=("schema", "what it describes"), rows=rows),)
    from archsim.answers.calibration import ShownConstants
    from archsim.calibration.constants import default

    shown = ShownConstants(calibration=default(), prefix=name)
    if not shown.constants:
        raise click.UsageError(f"no constant begins with {name!r}; without a prefix all are listed")
    return (shown,)
