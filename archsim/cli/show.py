"""`archsim show`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from archsim.base.arguments import ARGUMENTS
from archsim.cli.terminal import say
from archsim.cli.types import Shown, option
from archsim.cli.vocabulary import AnswerForm, answer_forms

if TYPE_CHECKING:
    from archsim.calibration.constants import Constant


@click.command("show")
@click.argument("what", type=click.Choice(["hw", "node", "net", "stack", "calibration", "silicon", "schema"]))
@click.argument("name", type=Shown(), required=False)
@answer_forms(json="Print one JSON object (not of silicon).")
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
    if what == "calibration":
        form.say(_calibration, _calibration_record, name or "")
        return
    if what == "silicon":
        if form.json:
            raise click.UsageError("show silicon has no JSON form; hwspecs/silicon has its data as TOML")

        from archsim.report.silicon import silicon_text

        say(silicon_text())
        return
    if what == "schema":
        say(_schema(name), plain=name is not None)
        return
    if what == "stack" and name is not None:
        from archsim.report.stack import stack_record, stack_text
        from archsim.stack.choose import named

        form.say(stack_text, stack_record, named(name))
        return
    if name is None:
        raise click.UsageError(f"show {what} needs a name; `archsim list {'hw' if what == 'hw' else what + 's'}` prints them")
    if as_toml:
        click.echo(_device_toml(name))
        return
    if what == "net":
        from archsim.cli.show_network import network_of, network_record, network_text

        shown = network_of(name, bind or {})
        form.say(network_text, network_record, shown)
        shown.raise_refused()
        return
    if what == "hw":
        from archsim.detect.catalog import find
        from archsim.report.hardware import device_record, device_text

        form.say(device_text, device_record, find(name))
    else:
        from archsim.node.spec import find as find_node
        from archsim.report.hardware import node_record, node_text

        form.say(node_text, node_record, find_node(name))


def _schema(name: str | None) -> str:
    """The JSON Schema of what a command prints with --json, or the list of them."""
    from archsim.answers.schemas import SCHEMAS, schema_of
    from archsim.base.errors import UnknownName
    from archsim.report.text import table

    known = sorted(SCHEMAS)
    if name is None:
        return table(("schema", "what it describes"), [(each, schema_of(each)["title"]) for each in known], left=2)
    if name not in known:
        raise UnknownName("schema", name, known, hint=f"one of {', '.join(known)}")
    return json.dumps(schema_of(name), indent=1, ensure_ascii=False)


def _device_toml(name: str) -> str:
    from archsim.detect.catalog import find
    from archsim.device.write import to_toml

    spec = find(name)
    return to_toml(spec, f"{spec.identity.name}, every value of it; change id, name and what differs.").rstrip("\n")


def _calibration(prefix: str) -> str:
    """The constants whose names begin so, with the interval of those that were fitted."""
    from archsim.calibration.constants import default
    from archsim.report.text import table

    calibration = default()
    spreads = calibration.uncertainties()
    rows = []
    for name, c in calibration.constants.items():
        if name.startswith(prefix):
            factor = spreads.get(name)
            near = "" if factor is None else f"{c.value / factor:.3g} to {c.value * factor:.3g}"
            rows.append((name, f"{c.value:.4g}", near, f"{c.low:g} to {c.high:g}", _kind(c), c.origin))
    if not rows:
        raise click.UsageError(f"no constant begins with {prefix!r}; without a prefix all are listed")
    head = f"calibration {calibration.version}; {len(rows)} constants, {sum(row[4] == 'fitted' for row in rows)} of them fitted"
    body = f"{head}\n\n" + table(("constant", "value", "80 % interval", "range", "kind", "origin"), rows, left=6)
    derived = {name: c.derived for name, c in calibration.constants.items() if name.startswith(prefix) and c.derived is not None}
    if not derived:
        return body
    own = [(of, *(f"{values[of]:.4g}" if of in values else "" for values in derived.values()))
           for of in sorted({of for values in derived.values() for of in values})]  # fmt: skip
    head = "By the cycle model, for each kind of SM (architecture and warps) and, where they differ, each device:"
    return f"{body}\n\n{head}\n\n" + table(("SM or device", *derived), own, left=1)


def _kind(constant: Constant) -> str:
    return "fitted" if constant.fitted else "prior" if constant.derived is None else "derived"


def _calibration_record(prefix: str) -> dict[str, Any]:
    """The same constants for programs, with their factor of uncertainty."""
    from dataclasses import asdict

    from archsim.calibration.constants import default

    calibration = default()
    spreads = calibration.uncertainties()
    found = {name: asdict(c) | {"uncertainty": spreads.get(name)} for name, c in calibration.constants.items()
             if name.startswith(prefix)}  # fmt: skip
    if not found:
        raise click.UsageError(f"no constant begins with {prefix!r}; without a prefix all are listed")
    return {"schema": "archsim-calibration/1", "version": calibration.version, "constants": found}
