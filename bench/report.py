"""The table of a benchmark run: what upstream's server reached, what is asked of ours, and what ours reached."""

import os
import platform
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

HEADINGS = ("what", "upstream", "asked", "ours", "")
MARKS = {True: "yes", False: "NO", None: ""}


@dataclass(frozen=True, slots=True)
class Row:
    """One measured thing. ``met`` is None when nothing is asked of it."""

    what: str
    upstream: str
    asked: str
    ours: str
    met: bool | None = None

    @property
    def cells(self) -> tuple[str, ...]:
        """The row's texts."""
        return self.what, self.upstream, self.asked, self.ours, MARKS[self.met]


def at_most(what: str, upstream: str, bound: float, ours: float, unit: str = "ms", *, asked: str = "") -> Row:
    """Build a row that is met by a figure not above its bound."""
    limit = f"{bound:.4g} {unit}"
    return Row(what, upstream, f"{asked} = {limit}" if asked else f"≤ {limit}", f"{ours:.4g} {unit}", ours <= bound)


def at_least(what: str, upstream: str, bound: float, ours: float, unit: str) -> Row:
    """Build a row that is met by a figure not below its bound."""
    return Row(what, upstream, f"≥ {bound:.4g} {unit}", f"{ours:.4g} {unit}", ours >= bound)


def table(rows: list[Row]) -> str:
    """Return the rows as a Markdown table that also reads well in a terminal."""
    cells = [HEADINGS, *(row.cells for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEADINGS))]
    lines = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) + " |" for line in cells
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


def machine() -> str:
    """Describe where and on what was measured."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in _read("/proc/cpuinfo").splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    memory = next((line.split()[1] for line in _read("/proc/meminfo").splitlines() if line.startswith("MemTotal")), "0")
    version = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout.split()[2]
    revision = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False, cwd=Path(__file__).parent
    ).stdout.strip()
    return (
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, commit {revision}, {os.cpu_count()} × {model}, "
        f"{int(memory) // 1024**2} GiB, Python {platform.python_version()}, git {version}, load {os.getloadavg()[0]:.1f} "
        "at the end"
    )


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def write(path: Path, rows: list[Row], notes: list[str]) -> None:
    """Put the table between the markers of a document, or make the document."""
    begin, end = "<!-- measured: begin -->", "<!-- measured: end -->"
    block = f"{begin}\n{machine()}\n\n{table(rows)}\n" + "".join(f"\n- {note}" for note in notes) + f"\n{end}"
    text = path.read_text() if path.exists() else f"# Benchmarks\n\n{begin}\n{end}\n"
    head, _, rest = text.partition(begin)
    _, _, tail = rest.partition(end)
    path.write_text(head + block + tail)
