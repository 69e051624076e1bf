"""The frame of every page: content policy, styles, scripts, and the library that draws its charts, if it has any.

A page is one file that loads nothing. What nobody zooms is static (tables, bars, SVG); other charts are drawn by plotly's
"basic" bundle (lines, marks, bars), which stands packed in the page, and which the browser unpacks.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from importlib.resources import files

from archsim.report.markup import bound_styles, text

# The browser refuses to load anything from outside the page.
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
SCRIPTS = ("tables.js", "tree.js", "page.js")
BUNDLE = "plotly-basic.min.js.gz"  # in vendor/, with its licence


def document(title: str, sections: Iterable[str], library: str = "") -> str:
    """A page of these sections; `library` is the packed code that draws charts (`figures.library`), if it has any."""
    packed = f'<script type="application/octet-stream" id="library">{library}</script>\n' if library else ""
    body = "\n".join(filter(None, sections))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{text(title)}</title>\n<style>\n{asset('page.css')}{bound_styles()}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n{packed}<script>\n{''.join(map(asset, SCRIPTS))}</script>\n</body>\n</html>\n"
    )


def bundle() -> str:
    """The packed library as it stands in a page: gzip in base 64."""
    return b64encode(files("archsim.render").joinpath("vendor", BUNDLE).read_bytes()).decode("ascii")


def asset(name: str) -> str:
    """A style or script of this package."""
    return files("archsim.render").joinpath(name).read_text(encoding="utf-8")
