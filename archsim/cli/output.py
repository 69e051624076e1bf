"""Files that several commands write besides their output."""

from __future__ import annotations

import click

from archsim.schedule.observer import Recording


def write_timeline(path: str, recording: Recording, title: str) -> None:
    """Write a timeline for Perfetto; InputError where it cannot be written."""
    from archsim.base.files import write_text
    from archsim.report.timeline import chrome_trace

    write_text(path, chrome_trace(recording, title))
    click.echo(f"archsim: wrote {path}", err=True)
