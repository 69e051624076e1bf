"""`archsim cache`."""

from __future__ import annotations

from typing import Any

import click

from archsim.base.writer import OutputFile
from archsim.cli.output import AnswerForm, answer_forms, files_in, html_option, write_json, write_page
from archsim.cli.terminal import show_text
from archsim.cli.vocabulary import Known, choices, refuse_others, some_options

OF_CHECK = frozenset({"check", "plain"})
OF_TRACE = frozenset({"hw", "trace", "policy", "instructions", "curve", "plain", "settings", "scales", "as_json", "as_csv",
                      "html", "timed", "force"})  # fmt: skip
POLICIES = ("lru", "fifo", "random", "tree-plru", "bit-plru", "srrip")


@click.command("cache")
@click.option("--hw", type=Known("device"), default=None, help="A shipped device, an alias, or the path of a spec file.")
@click.option("--trace", type=click.Path(), default=None, metavar="FILE",
              help="Addresses of a program: lackey or din, plain or .gz.")  # fmt: skip
@click.option("--net", type=Known("network"), default=None,
              help="A shipped network, or a path: trace file, ONNX, prototxt, config.json, Chakra.")  # fmt: skip
@click.option("--layer", default=None, metavar="NAME", help="The op of --net whose longest kernel is simulated.")
@click.option("--policy", default="lru", show_default=True, type=click.Choice(POLICIES),
              help="Replacement policy of every level.")  # fmt: skip
@click.option("--instructions", is_flag=True, help="Include instruction fetches, as a second core.")
@click.option("--time", "timed", is_flag=True, help="With --trace: how long a core takes for the program, at least and at most.")
@click.option("--curve/--no-curve", default=True, show_default=True,
              help="Misses by cache size and by cause, from stack distances.")  # fmt: skip
@click.option("--plain", is_flag=True, help="Do not use numba (extra fast), even if it is installed.")
@some_options("traffic", "inputs", "cold")
@answer_forms("Print one CSV row per level.", all="Also print misses by cache size.")
@html_option("Also write a self-contained page with the curve.")
@click.option("--check", default=None, metavar="FOLDER",
              help="Instead, compare the traffic model with simulated layers, and write traffic.json.")  # fmt: skip
def command(
    hw: str | None, trace: str | None, net: str | None, layer: str | None, policy: str, instructions: bool,
    timed: bool, curve: bool, plain: bool, form: AnswerForm, html: OutputFile | None, check: str | None, **given: Any,
) -> None:  # fmt: skip
    """Simulate a device's caches exactly, on the addresses of a program or of one layer of a network.

    Record a program with `valgrind --tool=lackey --trace-mem=yes --log-file=prog.lackey ./prog`. The addresses of a layer are
    those of the kernel that the model chooses: its tiles or CTAs on a GPU, its loops on one core of a CPU.

    \b
    Examples:
      archsim cache --hw i7_6700k --trace prog.lackey.gz
      archsim cache --hw i7_6700k --trace prog.lackey.gz --time
      archsim cache --hw gtx_1080 --net alexnet --layer conv2 --batch 16 --html caches.html
      archsim cache --check reports/validation
    """
    from archsim.answers.caches import sections
    from archsim.cli.progress import Progress
    from archsim.estimation.request import find_device, make_request
    from archsim.explain.caches import of_layer, of_trace

    arguments, fast = choices(given), False if plain else None
    if check is not None:
        refuse_others("--check", OF_CHECK)
        _check(check, fast)
        return
    if hw is None or (trace is None) == (net is None):
        raise click.UsageError("name a device with --hw, and either --trace FILE or --net NETWORK --layer NAME")
    if (net is None) != (layer is None):
        raise click.UsageError("--net and --layer belong together")
    for given_, option in ((instructions, "--instructions"), (timed, "--time")):
        if given_ and trace is None:
            raise click.UsageError(f"{option} belongs to --trace")
    if trace is not None:
        refuse_others("--trace", OF_TRACE)
    with Progress() as tell:
        def told(share: float) -> None:
            tell(f"{100 * share:.0f} of 100 % simulated")

        if trace is not None:
            spec = find_device(hw, arguments.get("settings"), arguments.get("scales"))
            answer = of_trace(spec, trace, policy=policy, instructions=instructions, curve=curve, timed=timed, fast=fast,
                              tell=told)  # fmt: skip
        else:
            assert net is not None
            assert layer is not None
            request = make_request(net, hw, **arguments)
            answer = of_layer(request, layer, policy=policy, curve=curve, fast=fast, tell=told)
    if html is not None:
        write_page(html, sections(answer))
    form.show(answer)


def _check(folder: str, fast: bool | None) -> None:
    """The closed forms of the traffic model beside the simulation, as a file."""
    from archsim.answers.closed_forms import TRAFFIC, traffic_record, traffic_sections
    from archsim.cli.progress import Progress
    from archsim.validation.traffic import compare
    from archsim.validation.traffic_kinds import by_role, kernel_distances

    (file,) = files_in(folder, {"traffic": TRAFFIC})
    with Progress() as tell:
        found = traffic_record(compare(fast, tell), by_role(kernel_distances(tell=tell)))
    write_json(file, found)
    show_text(traffic_sections(found))
