"""`archsim whatif`."""

from __future__ import annotations

from typing import Any

import click

from archsim.base.errors import nearest
from archsim.base.writer import OutputFile
from archsim.cli.completed import Keyed
from archsim.cli.options import choices, setting_options
from archsim.cli.output import write_page
from archsim.cli.vocabulary import HW, NET, AnswerForm, answer_forms, html_option
from archsim.study.changed import CHANGES, changed_argument


@click.command("whatif")
@NET
@HW
@setting_options
@click.option("--to", "to", type=Keyed(*CHANGES, device=False), multiple=True, metavar="WHAT=VALUE",
              help=f"Change something else than a value of the device: {', '.join(CHANGES)}.")  # fmt: skip
@click.option("--area", is_flag=True, help="Also estimate area and cost of the die from its parts.")
@answer_forms("Print one CSV row per op, before and after.", json="Print one JSON object with both estimates.",
              layers="Also list every layer and total, before and after.")  # fmt: skip
@html_option("Also write a self-contained page.")
def command(
    net: str, hw: str, to: tuple[str, ...], area: bool, form: AnswerForm, html: OutputFile | None, **given: Any,
) -> None:  # fmt: skip
    """Change a device and see each layer before and after: what gets faster, and what limits it then.

    --set and --scale change the device, --to anything else. All other options apply before and after.

    \b
    Examples:
      archsim whatif --net alexnet --hw tegra_x1 --set memory.bandwidth=51.2GB/s
      archsim whatif --net vgg_16 --hw titan_x_maxwell --batch 16 --scale sm.count=2 --area
      archsim whatif --net resnet_50 --hw tesla_k40 --batch 16 --to hw=tesla_v100_sxm2 --to precision=fp16
    """
    from archsim.answers.whatif import sections
    from archsim.study.whatif import whatif

    arguments, changed = choices(**given), _changes(to)
    if not (changed or arguments["settings"] or arguments["scales"]):
        raise click.UsageError("nothing is changed: --set KEY=VALUE, --scale KEY=FACTOR or --to WHAT=VALUE")
    found = whatif(net, hw, arguments, changed, area)
    if html is not None:
        write_page(html, sections(found))
    form.show(found)


def _changes(pairs: tuple[str, ...]) -> dict[str, Any]:
    """The arguments of an estimate that `--to` names."""
    found: dict[str, Any] = {}
    for text in pairs:
        name, separator, value = (part.strip() for part in text.partition("="))
        name = name.replace("-", "_")
        if not separator or not value:
            raise click.BadParameter(f"{text!r} is not WHAT=VALUE, like precision=fp16", param_hint="--to")
        if name not in CHANGES:
            near = nearest(name, CHANGES) or list(CHANGES)
            hint = "; spec values are changed by --set and --scale" if "." in name else f"; nearest: {', '.join(near)}"
            raise click.BadParameter(f"{name!r} cannot be changed{hint}", param_hint="--to")
        try:
            found[name] = changed_argument(name, value)
        except ValueError:
            raise click.BadParameter(f"{value!r} is no value of {name}", param_hint="--to") from None
    return found
