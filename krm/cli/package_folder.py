"""The folder that a local command works on, and the places its outcome goes to. Source: ``kpt.md`` 1.7 and 2.16."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from krm.cli.failures import CommandFailed
from krm.functions.external.resource_stream import write_bare_resources, write_placed_resources
from krm.functions.resource import Resource
from krm.package.contents import Contents
from krm.package.folder import read_folder, write_folder
from krm.package.yaml_edit_text import new_document

STDOUT = "stdout"
UNWRAP = "unwrap"
"""The outputs that are not folders: a ResourceList, or the resources alone."""
RESULTS_FILE = "results.yaml"


def resolved_folder(folder: Path) -> Path:
    """Return the absolute path of a package's folder, telling the user where a symbolic link leads.

    Raises:
        CommandFailed: there is no such folder.
    """
    if not folder.is_dir():
        raise CommandFailed(f'"{folder}" is no directory')
    resolved = folder.resolve()
    if folder.is_symlink():
        note = "please note that the symlinks within the package are ignored"
        click.echo(f'[WARN] resolved symlink "{folder}" to "{resolved}", {note}', err=True)
    return resolved


def read_package(folder: Path) -> Contents:
    """Read a folder; it may be any, with a Kptfile or without."""
    return read_folder(folder)


def require_new_folder(output: str) -> None:
    """Make sure that an output folder does not exist yet.

    Raises:
        CommandFailed: it does.
    """
    if output not in ("", STDOUT, UNWRAP) and Path(output).exists():
        raise CommandFailed(f'directory "{output}" already exists, please delete the directory and retry')


def print_resources(resources: Sequence[Resource], output: str, results: Sequence[Mapping[str, Any]] = ()) -> None:
    """Print resources on standard output, as a ResourceList or bare."""
    text = write_bare_resources(resources) if output == UNWRAP else write_placed_resources(resources, results)
    sys.stdout.write(text)
    sys.stdout.flush()


def write_new_folder(output: str, contents: Contents) -> None:
    """Write a whole package to a folder that does not exist yet."""
    write_folder(Path(output), {}, contents)


def write_results(folder: Path, results: Mapping[str, Any]) -> None:
    """Write what functions reported to a folder, which is made if it is missing, and say where."""
    nothing = {
        "apiVersion": "kpt.dev/v1",
        "kind": "FunctionResultList",
        "metadata": {"name": "fnresults"},
        "exitCode": 0,
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / RESULTS_FILE
    path.write_text(new_document(dict(results) or nothing), encoding="utf-8")
    click.echo(f"For complete results, see {path}", err=True)
