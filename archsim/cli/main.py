"""`archsim`: the group of commands, and the one place that turns errors into exit codes."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from typing import Any

import click

from archsim.base.errors import EXIT, ArchsimError
from archsim.base.version import __version__

# command -> (module, one line for the overview); a command's module is imported only when it runs
COMMANDS = {
    "estimate": ("archsim.cli.estimate", "Predict one network on one device."),
    "explain": ("archsim.cli.explain", "Why one layer takes its time: the equations with their numbers."),
    "compare": ("archsim.cli.compare", "Which of several devices is fastest, per watt, per dollar, and from which batch on."),
    "whatif": ("archsim.cli.whatif", "Before and after a change, layer by layer."),
    "sensitivity": ("archsim.cli.sensitivity", "What one per cent of each value of the spec buys."),
    "simulate": ("archsim.cli.simulate", "What a sum of layers cannot say: requests that queue, devices that train together."),
    "sweep": ("archsim.cli.sweep", "Machines that do not exist: all values of some knobs, or a sample of them."),
    "search": ("archsim.cli.search", "The best of many what-ifs, within conditions; what a target would take."),
    "study": ("archsim.cli.study", "A question in a file, answered by a report with tables and pictures."),
    "cache": ("archsim.cli.cache", "Hits, misses and traffic of caches on a program's or a layer's addresses."),
    "validate": ("archsim.cli.validate", "How far predictions are from published measurements."),
    "list": ("archsim.cli.list", "What is there: devices, networks, stacks, fidelities, op kinds."),
    "show": ("archsim.cli.show", "One device, network or stack with every number and its source."),
    "calibrate": ("archsim.cli.calibrate", "Fit the model's constants to measurements."),
    "detect": ("archsim.cli.detect", "Describe this machine as a spec; --hw host uses it."),
    "measure": ("archsim.cli.measure", "Run networks on this machine and write what they took."),
    "doctor": ("archsim.cli.doctor", "Check this installation."),
}


class Lazy(click.Group):
    """A group whose commands are imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of the command."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(COMMANDS[cmd_name][0]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The overview, without importing every command for its help."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Name the nearest command when there is no such one."""
        from archsim.base.errors import nearest

        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = nearest(args[0], COMMANDS) or list(COMMANDS)
            raise click.UsageError(f"no command {args[0]!r}; nearest: {', '.join(near)}", ctx)
        return super().resolve_command(ctx, args)


EPILOG = """\b
Examples:
  archsim estimate --net alexnet --hw tegra_x1
  archsim estimate --net vgg_16 --hw gtx_1080 --batch 16 --task forward_backward --html out.html
  archsim compare --net resnet_50 --hw tesla_k40,gtx_1080,i7_6700k --batch 16
  archsim explain --net alexnet --hw gtx_1080 --layer conv2
  archsim simulate serve --net resnet_50 --hw tesla_t4 --rate 200 --batching max=32,wait=5ms
  archsim show hw tegra_x1

Data goes to standard output, everything else to standard error. Exit codes: 0 ok, 1 a stated bound was missed,
2 usage, 65 bad input, 66 missing file, 69 missing optional package, 70 a defect of archsim, 130 interrupted.
Not modelled yet: sparsity, kernel fusion beyond what the stack's file says, models split over several devices."""


@click.command(cls=Lazy, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="archsim")
def group() -> None:
    """Predict the time and energy that neural networks take on CPUs and GPUs, beside what others have measured."""


def main() -> None:
    """Run the command line and leave with its exit code."""
    gc.set_threshold(50_000)  # what imports make stays; to look through it every 700 objects takes a tenth of a cold start
    if sys.argv[1:2] != ["measure"]:  # which times libraries that may share this one's threads
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy would start and stop threads that no command uses
    try:
        code = group.main(standalone_mode=False, prog_name="archsim")
        sys.stdout.flush()
    except click.exceptions.Abort:
        code = _say("interrupted", EXIT["interrupted"])
    except KeyboardInterrupt:
        code = _say("interrupted", EXIT["interrupted"])
    except click.ClickException as error:
        error.show()
        code = EXIT["usage"]
    except click.exceptions.Exit as leaving:
        code = leaving.exit_code
    except (BrokenPipeError, SystemExit):  # click leaves with 1 when a pipe is closed, which here would be a missed bound
        _drop_output()  # the reader has what it wanted
        code = EXIT["ok"]
    except OSError as error:
        _drop_output()
        code = _say(f"cannot write the output ({error.strerror or error})", EXIT["bad input"])
    except ArchsimError as error:
        code = _say(str(error), error.exit_code)
    except Exception as error:
        if os.environ.get("ARCHSIM_DEBUG"):
            raise
        text = f"{type(error).__name__}: {error}\nThis is a defect of archsim; ARCHSIM_DEBUG=1 shows where. Please report it."
        code = _say(text, EXIT["defect"])
    sys.exit(code if isinstance(code, int) else 0)


def _drop_output() -> None:
    """Keep the interpreter from writing, and complaining, once more at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(text: str, code: int) -> int:
    shown = "".join(c if c.isprintable() or c == "\n" else "?" for c in text)  # names of strangers' files stand in it
    click.echo(f"archsim: {shown}", err=True)
    return code
