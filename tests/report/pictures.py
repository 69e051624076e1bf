"""Pictures of pages as a browser draws them, ten times smaller: what differs by more than a blur is a change of a page.

`python -m tests.report.pictures` stores them anew; look at each before you commit it.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archsim.device import catalog
from archsim.estimation.estimate import estimate
from archsim.report.page import page

from ..ui.asked import get

Picture = NDArray[np.float64]  # [rows, columns, 3], 0 to 1

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
STORED = Path(__file__).parent / "pictures"
VIEWS = {"wide": (1280, False), "phone": (390, False), "dark": (1280, True)}  # name -> width of the window [px], dark or not
DARK = "--blink-settings=preferredColorScheme=0"
HEIGHT = 1600  # of a page that is drawn [px]
SMALLER = 10  # times smaller a stored picture is, each way
TOLERANCE = 0.006  # mean difference of two pictures, of 1: another font makes 0.005, a lost chart 0.0075
ASKED = {
    "compare": ["compare", "--net", "alexnet", "--hw", "tegra_x1,gtx_1080,rtx_4090", "--batch", "128"],
    "serve": ["simulate", "serve", "--net", "alexnet", "--hw", "gtx_1080", "--rate", "100/s", "--requests", "500"],
    "tune": ["tune", "--net", "alexnet", "--hw", "titan_x_maxwell", "--batch", "8", "--minimise", "energy"],
    "sensitivity": ["sensitivity", "--net", "alexnet", "--hw", "tegra_x1"],
    "validation": ["validate", "--source", "nvidia_tx1_wp"],
    "scoreboard": ["validate", "--predictor", "published", "--source", "neusight"],
    "sweep": ["sweep", "--net", "alexnet", "--hw", "gtx_1080", "--vary", "sm.count=8:40:4", "--vary",
              "memory.bandwidth=100GB/s:800GB/s:8log"],
    "cache": ["cache", "--hw", "i7_6700k", "--net", "resnet_20", "--layer", "conv1", "--plain"],
}  # fmt: skip
SERVED = {  # pages of `archsim ui`
    "ui": ("/", {"net": "alexnet", "hw": "tegra_x1", "memory.bandwidth": "50 GB/s"}),
    "ui_models": ("/llm", {"net": "llama_3_8b", "hw": "h100_sxm5_80gb", "memory.bandwidth": "4 TB/s"}),
}
NAMES = (*ASKED, "large", "small")
DRAWN = (*NAMES, *SERVED)  # all that a picture is stored of


def made(folder: Path) -> dict[str, str]:
    """All pages by name; those of commands lie in the folder."""
    for name, words in ASKED.items():
        command = [sys.executable, "-m", "archsim", *words, "--html", str(folder / f"{name}.html")]
        subprocess.run(command, check=True, capture_output=True, timeout=300)
    written = {name: (folder / f"{name}.html").read_text("utf-8") for name in ASKED}
    large = estimate("resnet_152", "h100_sxm5_80gb", batch=8, precision="fp16")
    small = estimate("alexnet", "tegra_x1")
    return {**written, "large": page(large, catalog.find("h100_sxm5_80gb")), "small": page(small, catalog.find("tegra_x1"))}


def served() -> dict[str, str]:
    """Pages of the what-if server as they arrive, with their style and without their script."""
    style = get("/ui.css")[2]
    bodies = {name: get(path, words)[2] for name, (path, words) in SERVED.items()}
    link = '<link rel="stylesheet" href="/ui.css">'
    return {name: body.replace(link, f"<style>{style}</style>") for name, body in bodies.items()}


def taken(body: str, folder: Path, width: int, dark: bool) -> Picture:
    """A page as a browser draws its beginning. No window is as narrow as a phone, so that one is a frame of a wider window."""
    (folder / "page.html").write_text(body, "utf-8")
    frame = f'<style>body{{margin:0}}</style><iframe src="page.html" style="width:{width}px;height:{HEIGHT}px;border:0"></iframe>'
    (folder / "frame.html").write_text(frame, "utf-8")
    place = folder / "picture.png"
    command = [
        str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--allow-file-access-from-files",
        "--virtual-time-budget=10000", f"--user-data-dir={folder / 'profile'}", *([DARK] if dark else []),
        f"--window-size={max(width, 600)},{HEIGHT}", f"--screenshot={place}", (folder / "frame.html").as_uri(),
    ]  # fmt: skip
    subprocess.run(command, capture_output=True, timeout=120, check=True)
    return read_png(place)[:HEIGHT, :width]


def smaller(picture: Picture) -> Picture:
    """The means of squares of SMALLER pixels."""
    rows, columns = (size // SMALLER for size in picture.shape[:2])
    cut = picture[: rows * SMALLER, : columns * SMALLER]
    return cut.reshape(rows, SMALLER, columns, SMALLER, 3).mean(axis=(1, 3))


def difference(one: Picture, other: Picture) -> float:
    """The mean difference of two pictures; those of different sizes differ wholly."""
    return float(np.abs(one - other).mean()) if one.shape == other.shape else 1.0


def read_png(place: Path) -> Picture:
    """A PNG of 8 bits a channel without interlacing, as browsers and `write_png` make them."""
    data = place.read_bytes()
    packed, at, head = b"", 8, b""
    while at < len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        kind, content = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        head = content if kind == b"IHDR" else head
        packed += content if kind == b"IDAT" else b""
        at += 12 + size
    width, height, depth, colours, _, _, interlaced = struct.unpack(">IIBBBBB", head)
    assert (depth, interlaced) == (8, 0)
    channels = {2: 3, 6: 4}[colours]
    lines = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, 1 + width * channels)
    found = np.zeros((height, width * channels), np.uint8)
    for row in range(height):
        found[row] = _unfiltered(int(lines[row, 0]), lines[row, 1:], found[row - 1] if row else np.zeros_like(found[0]), channels)
    return np.asarray(found.reshape(height, width, channels)[:, :, :3] / 255.0)


def _unfiltered(kind: int, line: Any, above: Any, step: int) -> Any:
    """A line of a PNG before its filter: 0 none, 1 left, 2 above, 3 the mean of both, 4 Paeth's predictor."""
    if kind == 0:
        return line
    if kind == 2:
        return line + above
    if kind == 1:
        return np.add.accumulate(line.reshape(-1, step), axis=0, dtype=np.uint8).reshape(-1)
    found = [0] * step + line.tolist()
    up = [0] * step + above.tolist()
    for i in range(step, len(found)):
        left, top, corner = found[i - step], up[i], up[i - step]
        if kind == 3:
            guess = (left + top) // 2
        else:
            away = (abs(top - corner), abs(left - corner), abs(left + top - 2 * corner))
            guess = (left, top, corner)[away.index(min(away))]
        found[i] = (found[i] + guess) & 255
    return np.array(found[step:], np.uint8)


def write_png(place: Path, picture: Picture) -> None:
    """A picture as PNG."""
    pixels = np.round(picture * 255).astype(np.uint8)
    height, width, _ = pixels.shape
    lines = b"".join(b"\0" + row.tobytes() for row in pixels)

    def part(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    place.write_bytes(b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", zlib.compress(lines, 9)) + part(b"IEND", b""))


if __name__ == "__main__":
    STORED.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, body in {**made(Path(folder)), **served()}.items():
            for view, (width, dark) in VIEWS.items():
                write_png(STORED / f"{name}-{view}.png", smaller(taken(body, Path(folder), width, dark)))
