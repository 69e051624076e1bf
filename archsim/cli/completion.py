"""`archsim completion`."""

from __future__ import annotations

import click

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_ARCHSIM_COMPLETE"


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print what makes a shell complete commands, options, devices, networks, stacks and keys.

    \b
    Examples:
      eval "$(archsim completion bash)"     in ~/.bashrc
      eval "$(archsim completion zsh)"      in ~/.zshrc
      archsim completion fish | source      in ~/.config/fish/config.fish
    """
    from click.shell_completion import get_completion_class

    from archsim.cli.main import group

    found = get_completion_class(shell)
    assert found is not None
    script = found(group, {}, "archsim", VARIABLE)
    click.echo(script.source_template % script.source_vars())
