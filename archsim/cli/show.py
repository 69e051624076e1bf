"""`archsim show`."""

from __future__ import annotations

import json

import click

from archsim.base.arguments import ARGUMENTS
from archsim.cli.terminal import show_text
from archsim.cli.types import Shown, option
from archsim.cli.vocabulary import AnswerForm, answer_forms


@click.command("show")
@click.argument("what", type=click.Choice(["hw", "node", "net", "stack", "calibration", "silicon", "schema"]))
@click.argument("name", type=Shown(), required=False)
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
    if what == "schema" and name is not None:
        click.echo(_schema(name))
        return
    if what in ("calibration", "silicon", "schema"):
        _show_model(what, name or "", form)
        return
    if name is None:
        raise click.UsageError(f"show {what} needs a name; `archsim list {'hw' if what == 'hw' else what + 's'}` prints them")
    if as_toml:
        click.echo(_device_toml(name))
    elif what == "stack":
        from archsim.answers import stack
        from archsim.stack.choose import named

        form.show(named(name), stack)
    elif what == "net":
        from archsim.trace.shown import network_of

        shown = network_of(name, bind or {})
        form.show(shown)
        shown.raise_refused()
    elif what == "hw":
        from archsim.detect.catalog import find

        form.show(find(name))
    else:
        from archsim.node.spec import find as find_node

        form.show(find_node(name))


def _show_model(what: str, prefix: str, form: AnswerForm) -> None:
    """The constants of the calibration, the die model, or the schemas that there are."""
    if what == "calibration":
        from archsim.answers.calibration import ShownConstants
        from archsim.calibration.constants import default

        shown = ShownConstants(calibration=default(), prefix=prefix)
        if not shown.constants:
            raise click.UsageError(f"no constant begins with {prefix!r}; without a prefix all are listed")
        form.show(shown)
        return
    if form.json:
        raise click.UsageError("show silicon has no JSON form; hwspecs/silicon has its data as TOML" if what == "silicon" else
                               "show schema prints JSON where it is given the name of one")  # fmt: skip
    from archsim.answers import silicon
    from archsim.answers.listing import table_of
    from archsim.answers.schemas import SCHEMAS, schema_of

    if what == "silicon":
        show_text(silicon.sections(), form.level)
        return
    titles = [(name, schema_of(name)["title"]) for name in sorted(SCHEMAS)]
    show_text([table_of(("schema", "what it describes"), titles)])


def _schema(name: str) -> str:
    """The JSON Schema of what a command prints with --json."""
    from archsim.answers.schemas import SCHEMAS, schema_of
    from archsim.base.errors import UnknownName

    known = sorted(SCHEMAS)
    if name not in known:
        raise UnknownName("schema", name, known, hint=f"one of {', '.join(known)}")
    return json.dumps(schema_of(name), indent=1, ensure_ascii=False)


def _device_toml(name: str) -> str:
    from archsim.detect.catalog import find
    from archsim.device.write import to_toml

    spec = find(name)
    return to_toml(spec, f"{spec.identity.name}, every value of it; change id, name and what differs.").rstrip("\n")
