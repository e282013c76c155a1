"""How fast the toolchain reads, renders and merges packages, without a server: ``toolchain.py [--short]``.

Prints a JSON line of seconds (``*_s``) and the sizes they belong to. Every figure is the best of a few runs in this
process, with nothing remembered between them except where the name says so.
"""

import argparse
import gc
import json
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from large_packages import config_maps, deployments

from krm.functions.builtins import BuiltinRunner
from krm.functions.package_tree import load_tree
from krm.functions.pipeline import Rendered, render
from krm.functions.render_cache import RenderCache
from krm.package.contents import Contents, File
from krm.package.documents import read_file
from krm.package.merge.resource_merge import merge_resources

CATALOG = Path(__file__).resolve().parents[1] / "tests" / "data" / "nephio-catalog.tar.xz"
RENDERED = (500, 2000)
MERGED = (1000, 5000)


def best(work: Callable[[], object], runs: int = 3) -> float:
    """Return the shortest time of some runs, in seconds."""
    times: list[float] = []
    for _ in range(runs):
        with timed(times):
            work()
    return min(times)


@contextmanager
def timed(into: list[float]) -> Iterator[None]:
    """Note how long the block takes; the collector's debts are paid before."""
    gc.collect()
    began = time.perf_counter()
    yield
    into.append(time.perf_counter() - began)


def render_figures(sizes: tuple[int, int]) -> dict[str, float]:
    """Render Deployments with five functions, plain and with a selector each, and read them alone."""
    figures = {}
    for count in sizes:
        plain, selecting = deployments(count), deployments(count, selectors=True)
        figures[f"parse_{count}_s"] = best(lambda plain=plain: load_tree(plain))  # type: ignore[misc]
        figures[f"render_{count}_s"] = best(lambda plain=plain: succeed(plain))  # type: ignore[misc]
        figures[f"render_selectors_{count}_s"] = best(lambda selecting=selecting: succeed(selecting))  # type: ignore[misc]
    return figures


def cache_figures(count: int) -> dict[str, float]:
    """Render as a server does, then what came out of it, as a client that saves it unchanged makes the server do."""
    cache = RenderCache(64 << 20)
    runner = BuiltinRunner()
    first: list[float] = []
    with timed(first):
        rendered = render(deployments(count), runner, cache=cache)
    outcome = {path: File(file.data, file.mode) for path, file in rendered.contents.items()}
    again = best(lambda: render(outcome, runner, cache=cache), runs=1)
    if render(outcome, runner, cache=cache).contents != render(outcome, runner).contents:
        raise RuntimeError("what was remembered is not what rendering gives")
    return {f"cached_first_{count}_s": first[0], f"cached_again_{count}_s": again}


def succeed(contents: Contents) -> Rendered:
    """Render; a failure would be fast, and no figure."""
    rendered = render(contents, BuiltinRunner())
    if rendered.failed:
        raise RuntimeError(rendered.error)
    return rendered


def merge_figures(sizes: tuple[int, int]) -> dict[str, float]:
    """Merge ConfigMaps that upstream and local changed in different fields."""
    figures = {}
    for count in sizes:
        origin, updated, local = config_maps(count), config_maps(count, mode="fast"), config_maps(count, owner="us")

        def merge(origin: Contents = origin, updated: Contents = updated, local: Contents = local) -> None:
            merged = merge_resources(origin, updated, local).files["settings.yaml"].data
            if (merged.count(b"mode: fast"), merged.count(b"owner: us")) != (count, count):  # noqa: B023 - called at once
                raise RuntimeError("the merge lost a change")

        figures[f"merge_parse_{count}_s"] = best(lambda local=local: read_file(local["settings.yaml"].data))  # type: ignore[misc]
        figures[f"merge_{count}_s"] = best(merge)
    return figures


def catalog_figures() -> dict[str, float]:
    """Read every YAML file of the Nephio catalog."""
    files = []
    with tarfile.open(CATALOG) as archive:
        for member in archive.getmembers():
            name = member.name.rpartition("/")[2]
            if member.isfile() and (name == "Kptfile" or name.endswith((".yaml", ".yml"))):
                stream = archive.extractfile(member)
                assert stream is not None
                files.append(File(stream.read()))
    megabytes = sum(len(file.data) for file in files) / 1e6
    seconds = best(lambda: [read_file(file.data) for file in files])
    return {"catalog_s": seconds, "catalog_files": len(files), "catalog_mb": megabytes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="small packages")
    short = parser.parse_args().short
    figures = {
        **render_figures((50, 100) if short else RENDERED),
        **cache_figures(50 if short else RENDERED[0]),
        **merge_figures((50, 100) if short else MERGED),
        **catalog_figures(),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
