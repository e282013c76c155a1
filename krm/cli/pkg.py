"""``porch pkg``: packages as a whole, on local folders — start, compare, update, merge.

Exit codes: 0 done, 1 failed with a message that names the object, 2 wrong usage; ``diff`` has those of
diff(1). Commands import what they need when they run, so that ``--help`` answers at once.
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from krm.package.merge.conflicts import Conflict

EXIT_FAILED = 1
EXIT_DIFFERENT = 1
EXIT_TROUBLE = 2
"""``diff`` could not compare: as diff(1) says it, so that 1 always means a difference."""

_STDIN = Path("-")


class Boolean(StrEnum):
    """An option's truth value, spelled out."""

    TRUE = "true"
    FALSE = "false"


class Infer(StrEnum):
    """When lists are merged by the names of their elements although no schema says so."""

    AUTO = "auto"
    TRUE = "true"
    FALSE = "false"


class Strategy(StrEnum):
    """How an update is done."""

    RESOURCE_MERGE = "resource-merge"
    FAST_FORWARD = "fast-forward"
    FORCE_DELETE_REPLACE = "force-delete-replace"
    COPY_MERGE = "copy-merge"


app = typer.Typer(
    name="pkg",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Start, compare, update and merge packages in local folders.",
)

_Document = Annotated[Path, typer.Option(metavar="FILE", help="File with one document, or - for standard input.")]
_Folder = Annotated[Path, typer.Option(metavar="DIR", help="Folder with the package.")]


@app.command()
def init(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the new package; made if missing.")],
    *,
    name: Annotated[str, typer.Option(help="Name of the package; default: the folder's name.")] = "",
    description: Annotated[str, typer.Option(help="One sentence about the package.")] = "",
    keywords: Annotated[str, typer.Option(help="Words to find it by, separated by commas.")] = "",
    site: Annotated[str, typer.Option(help="Address of a page about it.")] = "",
) -> None:
    """Make a package of a folder: a Kptfile, a README and a package context.

    Files that exist stay as they are; a Kptfile that exists is refused, as the folder is a package already.
    """
    with _failures():
        from krm.package.folder import write_folder
        from krm.package.init import init_package

        if _exists(directory / "Kptfile"):
            _fail(f"{directory / 'Kptfile'}: exists; the folder is a package already")
        words = [word for part in keywords.split(",") if (word := part.strip())]
        files = init_package(name or directory.resolve().name, description, words, site)
        new = {path: file for path, file in files.items() if not _exists(directory / path)}
        write_folder(directory, {}, new)
        for path in new:
            typer.echo(f"wrote {directory / path}", err=True)


@app.command()
def diff(
    one: Annotated[Path, typer.Argument(metavar="A", help="Folder with a package.")],
    other: Annotated[Path, typer.Argument(metavar="B", help="Folder with the package to compare it with.")],
) -> None:
    """Print a patch that makes A of B's files; binary files are named only.

    Exit code 0: the packages are the same, 1: they differ, 2: they could not be compared.
    """
    with _failures(EXIT_TROUBLE):
        from krm.package.folder import read_folder
        from krm.package.merge.package_diff import patch

        is_different = False
        for line in patch(read_folder(one), read_folder(other)):
            is_different = True
            sys.stdout.write(line)
    if is_different:
        raise typer.Exit(EXIT_DIFFERENT)


@app.command()
def update(
    local: Annotated[Path, typer.Argument(metavar="LOCAL", help="Folder with the package to update, in place.")],
    *,
    origin: _Folder,
    update: _Folder,
    strategy: Annotated[Strategy, typer.Option(help="How both sides' changes come together.")] = (
        Strategy.RESOURCE_MERGE
    ),
) -> None:
    """Bring what changed from ORIGIN to UPDATE into LOCAL.

    ORIGIN is the upstream package as LOCAL was taken from it, UPDATE as it is now. Only files that change are
    written. Where both sides changed the same, upstream wins, and the place is listed.
    """
    with _failures():
        from krm.package.clone import add_merge_keys
        from krm.package.folder import read_folder, write_folder
        from krm.package.merge.package_diff import changed_files
        from krm.package.merge.strategies import update_package, with_strategy

        before = read_folder(local)
        result = update_package(read_folder(origin), read_folder(update), before, strategy=strategy)
        after = with_strategy(add_merge_keys(result.contents), strategy)
        write_folder(local, before, after)
    _print_conflicts(result.conflicts)
    for subpackage in result.pending:
        typer.echo(f"{subpackage.directory}: has an upstream of its own that changed; update it by itself", err=True)
    typer.echo(f"{len(changed_files(before, after))} files changed, {len(result.conflicts)} conflicts", err=True)


@app.command()
def merge3(
    *,
    origin: _Document,
    update: _Document,
    local: _Document,
    update_upstream: Annotated[
        Boolean, typer.Option(help="Whether a Kptfile takes upstream and upstreamLock from --update.")
    ] = Boolean.FALSE,
    infer: Annotated[
        Infer,
        typer.Option(
            help="Whether lists whose elements all have a name are merged by it without a schema that says so; "
            "auto: only in documents without an apiVersion, which have no schema."
        ),
    ] = Infer.AUTO,
    crd: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="CustomResourceDefinitions whose list keys hold.")
    ] = None,
) -> None:
    """Print the three-way merge of one resource, or of a Kptfile by the Kptfile's rules.

    An empty file stands for a resource that is not there; nothing is printed when none is left. A
    Kptfile is recognised by --local, and its lists are always merged by name. Conflicts go to standard error.
    """
    with _failures():
        from krm.package.merge.text_merge import merge_texts

        text, conflicts = merge_texts(
            *(_read(path) for path in (origin, update, local)),
            crds=[_read(path) for path in crd or ()],
            update_upstream=update_upstream is Boolean.TRUE,
            infer=None if infer is Infer.AUTO else infer is Infer.TRUE,
        )
    sys.stdout.buffer.write(text)
    _print_conflicts(conflicts)


@contextmanager
def _failures(code: int = EXIT_FAILED) -> Iterator[None]:
    """Turn expected failures into one message and an exit code."""
    from krm.package.contents import ContentsError
    from krm.package.kptfile_error import KptfileError
    from krm.package.merge.update_error import UpdateError
    from krm.package.yaml_reader import YamlError

    try:
        yield
    except (ContentsError, KptfileError, UpdateError, YamlError) as error:
        _fail(str(error), code)
    except OSError as error:
        _fail(f"{error.filename or 'disk'}: {error.strerror or error}", code)


def _fail(message: str, code: int = EXIT_FAILED) -> NoReturn:
    typer.echo(f"porch pkg: {message}", err=True)
    raise typer.Exit(code)


def _print_conflicts(conflicts: Iterable["Conflict"]) -> None:
    for conflict in conflicts:
        typer.echo(f"conflict: {conflict}", err=True)


def _exists(path: Path) -> bool:
    return path.is_symlink() or path.exists()


def _read(path: Path) -> bytes:
    """Read a document, no more of it than the YAML reader takes."""
    from krm.package.yaml_reader import MAX_BYTES

    if path == _STDIN:
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    with path.open("rb") as stream:
        return stream.read(MAX_BYTES + 1)


if __name__ == "__main__":
    app()
