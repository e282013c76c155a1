"""``porch pkg``: packages as a whole, on local folders — start, compare, update, merge.

Exit codes: 0 done, 1 failed with a message that names the object, 2 wrong usage; ``diff`` has those of
diff(1). Commands import what they need when they run, so that ``--help`` answers at once.
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

if TYPE_CHECKING:
    from krm.package.merge.conflicts import Conflict

EXIT_FAILED = 1
EXIT_DIFFERENT = 1
EXIT_TROUBLE = 2
"""``diff`` could not compare: as diff(1) says it, so that 1 always means a difference."""

_STDIN = Path("-")
_STRATEGIES = ("resource-merge", "fast-forward", "force-delete-replace", "copy-merge")
_INFER = {"auto": None, "true": True, "false": False}
_Folder = click.Path(exists=True, file_okay=False, path_type=Path)
_Document = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)


@click.group()
def cli() -> None:
    """Start, compare, update and merge packages in local folders."""


@cli.command()
@click.argument("directory", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.option("--name", default="", help="Name of the package; default: the folder's name.")
@click.option("--description", default="", help="One sentence about the package.")
@click.option("--keywords", default="", help="Words to find it by, separated by commas.")
@click.option("--site", default="", help="Address of a page about it.")
def init(directory: Path, name: str, description: str, keywords: str, site: str) -> None:
    """Make a package of the folder DIR: a Kptfile, a README and a package context.

    DIR is made if it is missing. Files that exist stay as they are, but a Kptfile that exists is refused: the
    folder is a package already.
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
        click.echo(f"wrote {directory / path}", err=True)


@cli.command()
@click.argument("one", metavar="A", type=_Folder)
@click.argument("other", metavar="B", type=_Folder)
def diff(one: Path, other: Path) -> None:
    """Print a patch that makes the package in folder A the one in folder B.

    Binary files are named only. Exit code 0: the packages are the same, 1: they differ, 2: they could not be
    compared.
    """
    is_different = False
    with _failures(EXIT_TROUBLE):
        from krm.package.folder import read_folder
        from krm.package.merge.package_diff import patch

        for line in patch(read_folder(one), read_folder(other)):
            is_different = True
            sys.stdout.buffer.write(line.encode())
    if is_different:
        sys.exit(EXIT_DIFFERENT)


@cli.command()
@click.argument("local", metavar="LOCAL", type=_Folder)
@click.option("--origin", required=True, type=_Folder, help="The upstream package as LOCAL was taken from it.")
@click.option("--update", "updated", required=True, type=_Folder, help="The upstream package as it is now.")
@click.option(
    "--strategy",
    type=click.Choice(_STRATEGIES),
    default=_STRATEGIES[0],
    show_default=True,
    help="How the changes of both sides come together.",
)
def update(local: Path, origin: Path, updated: Path, strategy: str) -> None:
    """Bring what changed from --origin to --update into the folder LOCAL.

    Only files that change are written. Where both sides changed the same thing, the place is listed, with the
    value that was kept; upstream wins fields, local wins whole files and resources.
    """
    with _failures():
        from krm.package.folder import read_folder, write_folder
        from krm.package.merge.package_diff import changed_files
        from krm.package.merge.strategies import update_package, with_resource_keys, with_strategy

        before = read_folder(local)
        result = update_package(read_folder(origin), read_folder(updated), before, strategy=strategy)
        after = with_strategy(with_resource_keys(result.contents), strategy)
        write_folder(local, before, after)
        changed = len(changed_files(before, after))
    _print_conflicts(result.conflicts)
    for subpackage in result.pending:
        click.echo(f"{subpackage.directory}: has an upstream of its own that changed; update it by itself", err=True)
    click.echo(f"{changed} files changed, {len(result.conflicts)} conflicts", err=True)


@cli.command()
@click.option("--origin", required=True, type=_Document, help="File with the common ancestor; - is standard input.")
@click.option("--update", "updated", required=True, type=_Document, help="File with upstream's new state.")
@click.option("--local", required=True, type=_Document, help="File with the local state.")
@click.option(
    "--update-upstream",
    type=bool,
    default=False,
    show_default=True,
    help="Whether a Kptfile takes upstream and upstreamLock from --update.",
)
@click.option(
    "--infer",
    type=click.Choice(tuple(_INFER), case_sensitive=False),
    default="auto",
    show_default=True,
    help="Whether lists whose elements all have a name are merged by it where no schema says so; "
    "auto: only in documents without an apiVersion, which can have no schema.",
)
@click.option(
    "--crd",
    "crds",
    multiple=True,
    type=_Document,
    help="File with CustomResourceDefinitions, whose list keys hold too; may be repeated.",
)
def merge3(origin: Path, updated: Path, local: Path, update_upstream: bool, infer: str, crds: tuple[Path, ...]) -> None:
    """Print the three-way merge of one resource, or of a Kptfile by the Kptfile's rules.

    An empty file stands for a resource that is not there; nothing is printed when none is left. Files of several
    resources are merged resource by resource. A Kptfile is recognised by --local, and its lists are always merged by name. Conflicts go to standard error.
    """
    with _failures():
        from krm.package.merge.text_merge import merge_texts

        text, conflicts = merge_texts(
            *map(_read, (origin, updated, local)),
            crds=map(_read, crds),
            update_upstream=update_upstream,
            infer=_INFER[infer],
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
    click.echo(f"porch pkg: {message}", err=True)
    sys.exit(code)


def _print_conflicts(conflicts: Iterable["Conflict"]) -> None:
    for conflict in conflicts:
        click.echo(f"conflict: {conflict}", err=True)


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
    cli()
