"""`archsim ui`."""

from __future__ import annotations

import webbrowser
from html import escape
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from archsim.base.errors import MissingExtra
from archsim.cli.vocabulary import Known

NEEDED = ("starlette", "uvicorn", "python_multipart")


@click.command("ui")
@click.option("--net", type=Known("network"), help="What the page opens with: a network, a language model, or a file.")
@click.option("--hw", type=Known("device"), help="The device, or a file of one.")
@click.option("--port", type=click.IntRange(0, 65535), default=8050,
              help="Port on 127.0.0.1; 0 takes a free one.")  # fmt: skip
@click.option("--no-browser", is_flag=True, help="Print the address and open nothing.")
def command(net: str | None, hw: str | None, port: int, no_browser: bool) -> None:
    """What if as a page in a browser: sliders for the values of a device, before and after, variants side by side.

    Networks and served language models; your own files by dropping them on the page. Only this computer can open it, with the key
    in the address that is printed. The address of a page holds all that it shows. Ctrl-C ends it.

    \b
    Examples:
      archsim ui
      archsim ui --net alexnet --hw gtx_1080
      archsim ui --port 9000 --no-browser
    """
    if not all(map(find_spec, NEEDED)):
        raise MissingExtra("`archsim ui`", "ui")
    from archsim.ui.server import PageServer

    try:
        made = PageServer(port)
    except OSError as error:
        why = f"{port}: {error.strerror or error}; another one, or 0 for a free one"
        raise click.BadParameter(why, param_hint="--port") from None
    with made.socket, TemporaryDirectory(prefix="archsim-ui-") as folder:
        try:
            address = made.address(net, hw)
            click.echo(address)
            click.echo("Ctrl-C ends it.", err=True)
            if not no_browser:
                # By a file that the user alone can read: words of a command, such as a browser's, are seen by all.
                page = Path(folder) / "open.html"
                page.write_text(f'<meta http-equiv="refresh" content="0;url={escape(address)}">', "utf-8")
                webbrowser.open(page.as_uri())
            made.run()
        finally:
            made.app.uploads.close()
