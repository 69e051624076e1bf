"""Options that several commands share, and the values that their texts become."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click
from click.core import ParameterSource

from archsim.base.errors import nearest
from archsim.base.units import COUNT, parse
from archsim.cli.completed import Keyed, Known
from archsim.cli.types import Decorator, Quantity, together
from archsim.cli.vocabulary import ListOption
from archsim.trace.training import TASKS

BATCHES = click.option("--batch", "batch_text", cls=ListOption, default=None, show_default="1", metavar="N|RANGE",
                       help="Samples per run: one number, a list 1,4,16, or a range 1:256:x2 or 8:64:8.")  # fmt: skip


class LateHelpOption(click.Option):
    """An option whose help names rows of a model: a function that is called only when help is printed, so that no command
    imports them earlier.
    """

    def __init__(self, *names: Any, late_help: Callable[[], str], **words: Any) -> None:
        super().__init__(*names, **words)
        self.late_help = late_help

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The option and its help."""
        self.help = self.late_help()
        return super().get_help_record(ctx)


def _fidelities() -> str:
    from archsim.estimation.fidelity import FIDELITIES

    *most, last = FIDELITIES
    return f"{', '.join(most)} or {last}."


FIDELITY = click.option("--fidelity", cls=LateHelpOption, late_help=_fidelities, type=Known("fidelity"), default="analytical",
                        show_default=True)  # fmt: skip


def energy_budget_option(text: str) -> Decorator:
    """`--energy-budget ENERGY`: the most that a sample may take."""
    return click.option("--energy-budget", type=Quantity("J"), default=None, metavar="ENERGY", help=text)


def some_options(*without: str) -> Decorator:
    """The options of `setting_options` except those named, whose arguments keep their defaults."""
    return only_options(*(name for name in SETTINGS if name not in without))


def only_options(*names: str) -> Decorator:
    """The named ones of the options of `setting_options`."""
    return together(*(SETTINGS[name] for name in names))


# name of the argument -> what adds its option
SETTINGS: dict[str, Decorator] = {
    "batch": click.option("--batch", type=int, default=None, show_default="1", help="Samples per run."),
    "seq_len": click.option("--seq-len", type=int, default=None, metavar="TOKENS",
                            help="Tokens in a sequence, for networks that take any number; their usual number if not given."),
    "bind": click.option("--bind", "bind", multiple=True, metavar="NAME=SIZE",
                         help="Size of a symbol in the shapes of the network's file, by the name that it has there: batch=8."),
    "strict": click.option("--strict", is_flag=True,
                           help="Refuse a network with operators that are known by their memory traffic only, or left out."),
    "precision": click.option("--precision", type=Known("precision"), default=None,
                              help="fp32, fp16, bf16, tf32, fp8, int8 or fp64; if not given fp32, or tf32 where the stack "
                                   "takes it unless asked."),
    "task": click.option("--task", type=Known("task"), default="inference", show_default=True, help=", ".join(TASKS) + "."),
    "optimiser": click.option("--optimiser", "--optimizer", type=Known("optimiser"), default=None,
                              help="What updates the weights: sgd, momentum or adamw; if not given adamw for networks with "
                                   "attention, else as published benchmarks of the stack's framework."),
    "stack": click.option("--stack", type=Known("stack"), default=None,
                          help="Software stack (`archsim list stacks`); the device's default if not given."),
    "fusion": click.option("--fusion", type=click.Choice(["none", "pointwise", "attention", "aggressive"]), default=None,
                           help="Which ops share a kernel, in place of the stack's own rule: none; pointwise: chains of "
                                "element-wise ops with a sum over rows; attention: these, and attention as one kernel; "
                                "aggressive: these, and what follows a product in its kernel."),
    "threads": click.option("--threads", type=int, default=None,
                            help="CPU threads; the stack's default if not given."),
    "devices": click.option("--devices", type=int, default=1, show_default=True,
                            help="Always 1; `archsim simulate train` and `serve` take several devices."),
    "clock": click.option("--clock", type=Quantity("Hz"), default=None, metavar="CLOCK",
                          help="Core clock, e.g. 690MHz; the spec's sustained clock if not given."),
    "memory_clock": click.option("--memory-clock", type=Quantity("Hz"), default=None, metavar="CLOCK",
                                 help="Memory clock of a GPU as drivers show it, half the data rate of a pin; the usual one if "
                                      "not given."),
    "power_limit": click.option("--power-limit", type=Quantity("W"), default=None, metavar="POWER",
                                help="Power limit, e.g. 150W: each kernel runs at the highest clock at which it draws no more."),
    "power_mode": click.option("--power-mode", default=None, metavar="MODE",
                               help="Power mode of a Jetson module: maxn, maxp or maxq."),
    "fidelity": FIDELITY,
    "traffic": click.option("--traffic", type=Known("traffic"), default="closed", show_default=True,
                            help="Bytes between the levels of caches: by closed forms, or simulated."),
    "streams": click.option("--streams", type=int, default=1, show_default=True,
                            help="CUDA streams on which ops may overlap; needs --fidelity event."),
    "host_cpu": click.option("--host-cpu", type=Known("device"), default=None, metavar="CPU",
                             help="CPU that dispatches ops to a GPU; the usual one of its spec if not given."),
    "inputs": click.option("--inputs", cls=ListOption, default=None, metavar="device|host|decoded[,KEY=VALUE]",
                           help="Where a GPU finds each batch: in its own memory; in the host's, from which it is copied in the "
                                "timed run; or in stored samples that the host decodes (decoded,workers=8,stored=array: keys "
                                "of the stack's reader). As the stack says if not given."),
    "graph": click.option("--graph", is_flag=True, help="Replay the run as one CUDA graph, if the stack can."),
    "cold": click.option("--cold", is_flag=True,
                         help="A single run: no weights of a run before are in a GPU's L2. Else it is one of many equal ones."),
    "settings": click.option("--set", "settings", type=Keyed(), multiple=True, metavar="KEY=VALUE",
                             help="Change a value of the device: memory.bandwidth=51.2GB/s."),
    "scales": click.option("--scale", "scales", type=Keyed(), multiple=True, metavar="KEY=FACTOR",
                           help="Multiply a value of the device: sm.count=2; `archsim show hw` prints the keys."),
    "calibration": click.option("--calibration", type=click.Path(), default=None, metavar="FILE",
                                help="Use the model constants of this file instead of the shipped ones."),
}  # fmt: skip
# All options that say what runs and how: --batch, --precision, --task, --stack, ..., --fidelity, --set, --calibration.
setting_options = only_options(*SETTINGS)


def choices(**given: Any) -> dict[str, Any]:
    """The keyword arguments of an estimate from the options of `setting_options`."""
    settings, scales, calibration = (given.pop(name) for name in ("settings", "scales", "calibration"))
    unset = ("batch", "clock", "memory_clock", "power_limit", "fusion", "optimiser")  # left out where nobody gives them
    given = {name: value for name, value in given.items() if value is not None or name not in unset}
    given = {name: value for name, value in given.items() if value or name not in ("strict", "cold")}
    given["settings"] = once([pair(text, "--set", "memory.bandwidth=51.2GB/s") for text in settings], "--set")
    bound = sizes_given(given.pop("bind", ()))
    given |= {"bind": bound} if bound else {}
    factors = once([pair(text, "--scale", "sm.count=2") for text in scales], "--scale")
    given["scales"] = {key: _factor(key, text) for key, text in factors.items()}
    if calibration is not None:
        from archsim.calibration.constants import load

        given["calibration"] = load(calibration)
    return given


def pairs(text: str, known: Sequence[str], option: str) -> dict[str, str]:
    """`max=32,wait=5ms` as {"max": "32", "wait": "5ms"}; a word without a value has the empty one.

    >>> pairs("disk,decode=8", ["disk", "decode"], "--input")
    {'disk': '', 'decode': '8'}
    """
    found: dict[str, str] = {}
    for part in names(text):
        key, _, value = (word.strip() for word in part.partition("="))
        if key not in known:
            near = nearest(key, known) or list(known)
            raise click.BadParameter(f"no {key!r}; nearest: {', '.join(near)}", param_hint=option)
        if key in found:
            raise click.BadParameter(f"{key} is given twice", param_hint=option)
        found[key] = value
    return found


def quantity(text: str, unit: str, option: str) -> float:
    """A value with its unit from an option."""
    try:
        return parse(text, unit)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=option) from None


def whole(text: str, option: str) -> int:
    """A whole number from an option that holds several."""
    try:
        return int(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a whole number", param_hint=option) from None


def pair(text: str, option: str, example: str) -> tuple[str, str]:
    """The key and the value of `KEY=VALUE`."""
    key, separator, value = text.partition("=")
    if not separator or not key.strip() or not value.strip():
        raise click.BadParameter(f"{text!r} is not KEY=VALUE, like {example}", param_hint=option)
    return key.strip(), value.strip()


def sizes_given(words: Sequence[str]) -> dict[str, int]:
    """The sizes of a network's symbols: `height=320`, each once."""
    given = once([pair(text, "--bind", "batch=8") for text in words], "--bind")
    return {symbol: whole(size, "--bind") for symbol, size in given.items()}


def once(found: Sequence[tuple[str, str]], option: str) -> dict[str, str]:
    """The pairs as a table, unless a key is given twice."""
    table = dict(found)
    if len(table) < len(found):
        keys = [key for key, _ in found]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise click.BadParameter(f"{twice} is given twice", param_hint=option)
    return table


def _factor(key: str, text: str) -> float:
    """A factor: `1.5`, `1.5x` or `150%`."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in ("x", "%") else (text, "")
    try:
        factor = parse(number, COUNT) * (0.01 if unit == "%" else 1.0)
    except ValueError as error:
        raise click.BadParameter(f"{key}: {error}", param_hint="--scale") from None
    if not 0 < factor < float("inf"):
        raise click.BadParameter(f"{key}: {text} is not a factor above 0", param_hint="--scale")
    return factor


def names(text: str) -> list[str]:
    """A comma-separated list."""
    return [name.strip() for name in text.split(",") if name.strip()]


def holds(condition: str, record: dict[str, Any]) -> bool:
    """Whether `latency > 5ms and power_w < 10` is true of a result.

    >>> holds("latency > 5ms and power_w < 10", {"latency_s": 0.01, "power_w": 5.0})
    True
    """
    import numpy as np

    from archsim.study.condition import nameable, read_conditions, unit_of
    from archsim.study.objective import SHORT

    numbers = {name: value for name, value in record.items() if isinstance(value, int | float)}
    known = nameable({name: unit_of(name) for name in numbers}, SHORT)
    return all(bool(c.holds({c.name: np.asarray(numbers[c.name])})) for c in read_conditions(condition, known))


def refuse_others(mode: str, allowed: frozenset[str]) -> None:
    """Raise UsageError for options that were given and that a mode does not read."""
    context = click.get_current_context()
    given = [parameter.opts[0] for parameter in context.command.params if parameter.name not in allowed
             and context.get_parameter_source(str(parameter.name)) is ParameterSource.COMMANDLINE]  # fmt: skip
    if given:
        raise click.UsageError(f"{', '.join(given)}: no effect with {mode}; leave it out")
