"""`archsim`: the group of commands, and the one place that turns errors and signals into exit codes."""

from __future__ import annotations

import gc
import importlib
import io
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import click

from archsim.base.errors import EXIT, ArchsimError, near_words
from archsim.base.version import __version__
from archsim.cli.terminal import color_option

LONGEST_WORD, SHOWN = 1000, 100  # characters of a word in a message, and those shown of a longer one
ENDING = ("SIGTERM", "SIGHUP")
SIGNALLED = 128  # an exit code above it names the signal, as in a shell
# command -> one line for the overview
COMMANDS = {
    "estimate": "Time, power, energy and memory of one network on one device.",
    "explain": "The equations behind one layer's time and energy, with their numbers.",
    "compare": "Rank several devices and stacks by speed, per watt, per dollar and by cost.",
    "llm": "A language model that an engine serves: time to first token, per token, joules, memory.",
    "power": "Power of a GPU from how busy its units are, as a profiler counts them.",
    "whatif": "Change a device and see each layer before and after.",
    "ui": "What if as a page in a browser: sliders, before and after, variants.",
    "sensitivity": "How much each value of a device matters: elasticities and a tornado.",
    "sweep": "Estimate every combination of many device values, or a sample of them.",
    "search": "Find the best device within conditions, or what a target takes.",
    "tune": "Find the best clocks, power limit and batch of a device, by energy or time.",
    "simulate": "Serving, training on several devices, all-reduce: queues and shared links.",
    "profile": "What a profiler recorded beside the prediction, and what the gap is made of.",
    "cache": "Simulate a cache hierarchy on the addresses of a program or a layer.",
    "validate": "Compare predictions with published measurements, or with yours.",
    "calibrate": "Fit the model's constants to measurements.",
    "detect": "Describe this computer as a device; --hw host uses it.",
    "new": "Write the spec file of a device of your own, like a known one.",
    "measure": "Run networks on this computer and write their times.",
    "study": "Answer a question in a file with a reproducible report.",
    "list": "List devices, nodes, networks, stacks, fidelities or op kinds.",
    "show": "Print one device, node, network or stack with the source of every number.",
    "manual": "Print a page of the manual, or the list of pages.",
    "completion": "Print what makes bash, zsh or fish complete commands, options and names.",
    "doctor": "Check this installation.",
}
# module here -> the commands that it holds, each as NAME_command
MODULES = {
    "estimate": ("estimate", "explain", "compare", "llm", "power", "profile"),
    "change": ("whatif", "sensitivity", "search", "tune", "ui"),
    "sweep": ("sweep", "study"),
    "simulate": ("simulate", "serve", "train", "allreduce"),
    "clocked": ("sm", "core", "kernels", "cache"),
    "validate": ("validate", "calibrate"),
    "list": ("list", "show"),
    "computer": ("detect", "new", "measure"),
    "manual": ("manual", "completion", "doctor"),
}


class LazyGroup(click.Group):
    """A group whose commands are imported on use.

    rows: a table like COMMANDS; noun: what one of them is called
    """

    def __init__(self, *names: Any, rows: Mapping[str, str], noun: str = "command", **words: Any) -> None:
        super().__init__(*names, **words)
        self.rows, self.noun = rows, noun

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of the table."""
        return list(self.rows)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of the command."""
        if cmd_name not in self.rows:
            return None
        home = next(module for module, held in MODULES.items() if cmd_name in held)
        command: click.Command = getattr(importlib.import_module(f"archsim.cli.{home}"), f"{cmd_name}_command")
        return command if isinstance(command, click.Group) else color_option(command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The overview, without importing every command for its help."""
        with formatter.section(f"{self.noun}s".capitalize()):
            formatter.write_dl([*self.rows.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; of a command line that it cannot read, say what may have been meant."""
        words = ctx.args
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            if error.ctx is None or error.ctx.parent is not ctx:
                raise
            from archsim.cli.vocabulary import explained

            raise explained(error, words) from None

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Name the nearest command when there is no such one."""
        if args and args[0] not in self.rows and not args[0].startswith("-"):
            raise click.UsageError(f"no {self.noun} {args[0]!r}; nearest: {near_words(args[0], self.rows)}", ctx)
        return super().resolve_command(ctx, args)


EPILOG = """\b
Examples:
  archsim estimate --net alexnet --hw tegra_x1
  archsim estimate --net vgg_16 --hw gtx_1080 --batch 16 --task forward_backward --html out.html
  archsim compare --net resnet_50 --hw tesla_k40,gtx_1080,i7_6700k --batch 16
  archsim explain --net alexnet --hw gtx_1080 --layer conv2
  archsim simulate serve --net resnet_50 --hw tesla_t4 --rate 200/s --batching max=32,wait=5ms
  archsim show hw tegra_x1
  archsim manual getting-started

Data goes to standard output, everything else to standard error. Exit codes: 0 ok, 1 a condition was not met,
2 usage, 65 bad input, 66 missing file, 69 missing optional package, 70 a defect of archsim, 130 interrupted.
Not modelled: sparsity, models split over several devices, kernel fusion beyond what the stack's file says."""


@click.command(
    cls=LazyGroup, rows=COMMANDS, epilog=EPILOG, invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110, "show_default": True},
)  # fmt: skip
@click.version_option(__version__, prog_name="archsim")
@click.pass_context
def group(ctx: click.Context) -> None:
    """Predict time, power, energy and memory of neural networks on CPUs and GPUs, beside published measurements."""
    if ctx.invoked_subcommand is None:
        from archsim.cli.computer import hello

        click.echo(hello())


class Terminated(KeyboardInterrupt):
    """A signal that ends the process, raised like an interrupt so that nothing half-written is left."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def output_is_open() -> bool:
    """Whether standard output can be written, after giving closed streams a place, so that no file takes their numbers.

    What the encoding of a terminal does not have is written as its number: a name of a file may have any bytes.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if sys.stdout is not None:
        return True
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    return False


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Raise Terminated for the signals that would end the process without clearing up; those ignored stay ignored."""
    before = {}
    if threading.current_thread() is threading.main_thread():
        for name in ENDING:
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                before[number] = signal.signal(number, _raise)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _raise(number: int, _: object) -> None:
    raise Terminated(number)


def main() -> None:
    """Run the command line and leave with its exit code."""
    gc.set_threshold(50_000)  # imported objects stay alive; scanning them every 700 objects would take a tenth of a cold start
    if sys.argv[1:2] != ["measure"]:  # it times libraries that may use the same variable
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy would start threads that no command uses
    if not output_is_open():
        sys.exit(_say("standard output is closed, so nothing could be printed", EXIT["bad input"]))
    if not all(map(_is_word, sys.argv)):
        sys.exit(_say("a word of the command line has a zero byte or half a character", EXIT["usage"]))
    try:
        with ended_by_signals():
            code = group.main(standalone_mode=False, prog_name="archsim")
            sys.stdout.flush()
    except click.exceptions.Abort as ending:  # what click makes of an interrupt
        code = _ended(ending.__cause__)
    except KeyboardInterrupt as ending:
        code = _ended(ending)
    except click.ClickException as error:
        click.UsageError(_shown(error.format_message()), getattr(error, "ctx", None)).show()
        code = EXIT["usage"]
    except click.exceptions.Exit as leaving:
        code = leaving.exit_code
    except (BrokenPipeError, SystemExit):  # click exits with 1 when a pipe is closed, which here means an unmet condition
        _drop_output()  # the reader of the pipe has stopped reading
        code = EXIT["ok"]
    except OSError as error:
        _drop_output()
        why = error.strerror or error
        code = _say(f"{error.filename}: {why}" if error.filename else f"cannot write the output ({why})", EXIT["bad input"])
    except MemoryError:
        code = _say("there is not enough memory for this", EXIT["bad input"])
    except ArchsimError as error:
        code = _say(str(error), error.exit_code)
    except Exception as error:
        if os.environ.get("ARCHSIM_DEBUG"):
            raise
        text = f"{type(error).__name__}: {error}\nThis is a defect of archsim; ARCHSIM_DEBUG=1 shows where. Please report it."
        code = _say(text, EXIT["defect"])
    sys.exit(code if isinstance(code, int) else 0)


def _is_word(text: str) -> bool:
    """Whether a system can pass a word; a caller inside this process can pass others."""
    try:
        return b"\0" not in text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False


def _ended(why: BaseException | None) -> int:
    if isinstance(why, Terminated):
        return _say("terminated", SIGNALLED + why.number)
    return _say("interrupted", EXIT["interrupted"])


def _drop_output() -> None:
    """Keep the interpreter from writing, and complaining, once more at exit."""
    with suppress(OSError):  # an output inside this process has no number
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _shown(text: str) -> str:
    """A message without control characters, its long words cut: what somebody gave may hold any, and have any length."""
    short = re.sub(rf"\S{{{LONGEST_WORD},}}", lambda word: f"{word[0][:SHOWN]}...", text)
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in short)


def _say(text: str, code: int) -> int:
    click.echo(f"archsim: {_shown(text)}", err=True)
    return code
