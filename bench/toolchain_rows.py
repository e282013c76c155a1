"""The rows of the table that ``toolchain.py`` measures: rendering, merging and reading packages."""

import json
import subprocess
import sys

from report import Row, at_most
from testbed import HERE

UPSTREAM_RENDER = {500: "3.8 s", 2000: "16.7 s"}
UPSTREAM_SELECTORS = {500: "4.9 s", 2000: "20 s"}
BOUNDS = {500: 1.0, 2000: 4.0}
PATIENCE = 600.0
LINEAR = 1.3
"""How much more than in proportion the larger size may take: what noise alone adds here."""

Figures = dict[str, float]


def toolchain_rows(short: bool) -> list[Row]:
    """Run the program in a process of its own, and compare its figures with what is asked."""
    command = [sys.executable, str(HERE / "toolchain.py"), *(["--short"] if short else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)
    figures: Figures = json.loads(done.stdout)
    print(f"  {figures}", flush=True)
    return [*_render_rows(figures), *_merge_rows(figures), *_catalog_rows(figures)]


def _sizes(figures: Figures, prefix: str) -> tuple[int, int]:
    sizes = sorted(
        int(size) for name in figures if name.startswith(prefix) and (size := name[len(prefix) : -2]).isdecimal()
    )
    return sizes[0], sizes[1]


def _render_rows(figures: Figures) -> list[Row]:
    small, large = _sizes(figures, "render_")
    rows = []
    for count in (small, large):
        seconds, parsing = figures[f"render_{count}_s"], figures[f"parse_{count}_s"]
        what = f"render {count} Deployments × 5 set-labels (reading alone {parsing:.3g} s)"
        rows.append(at_most(what, UPSTREAM_RENDER.get(count, "–"), BOUNDS.get(count, 1.0), seconds, "s"))
        selecting = figures[f"render_selectors_{count}_s"]
        what = f"the same {count} with a selector for each function"
        rows.append(at_most(what, UPSTREAM_SELECTORS.get(count, "–"), 1.2 * seconds, selecting, "s", asked="≤ 1.2 ×"))
    rows.append(_linear("render", small, large, figures, "render_"))
    first, again = figures[f"cached_first_{small}_s"], figures[f"cached_again_{small}_s"]
    what = f"render the outcome of {small} Deployments again, same process"
    rows.append(at_most(what, "–", 0.05 * first, again, "s", asked="≤ 5 % of the first"))
    return rows


def _merge_rows(figures: Figures) -> list[Row]:
    small, large = _sizes(figures, "merge_")
    what = f"resource-merge of {small} ConfigMaps (reading one side {figures[f'merge_parse_{small}_s']:.3g} s)"
    upstream = "21 s" if small == 1000 else "–"
    return [
        at_most(what, upstream, 2.0, figures[f"merge_{small}_s"], "s"),
        _linear("resource-merge", small, large, figures, "merge_"),
    ]


def _linear(what: str, small: int, large: int, figures: Figures, prefix: str) -> Row:
    ratio = figures[f"{prefix}{large}_s"] / figures[f"{prefix}{small}_s"]
    bound = LINEAR * large / small
    return at_most(f"{what}: {large} against {small}", "–", bound, ratio, "×", asked=f"linear, ≤ {LINEAR} ×")


def _catalog_rows(figures: Figures) -> list[Row]:
    what = f"load the Nephio catalog ({figures['catalog_files']} files, {figures['catalog_mb']:.1f} MB)"
    return [at_most(what, "–", 1.5, figures["catalog_s"], "s")]
