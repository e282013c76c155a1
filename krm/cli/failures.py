"""How local commands fail: one message on standard error, and an exit code. Source: ``kpt.md`` 1.4 and 2.10."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import click

EXIT_FAILED = 1


class CommandFailed(Exception):
    """A command cannot go on; the text is what its user reads."""


def fail(message: str) -> NoReturn:
    """Print why the command failed, and leave."""
    click.echo(f"Error: {message}", err=True)
    sys.exit(EXIT_FAILED)


@contextmanager
def reported_failures() -> Iterator[None]:
    """Turn what can be expected to go wrong with a user's files into a message; the rest is a defect."""
    # Imported already when anything of it can be raised.
    from krm.functions.external.resource_list import MalformedResourceList
    from krm.functions.package_tree import RenderError
    from krm.package.contents import ContentsError
    from krm.package.kptfile_error import KptfileError
    from krm.package.yaml_reader import YamlError

    try:
        yield
    except RenderError as error:
        fail(error.cause or str(error))
    except (CommandFailed, MalformedResourceList, ContentsError, KptfileError, YamlError) as error:
        fail(str(error))
    except BrokenPipeError:
        raise  # who reads the output has enough of it: click leaves quietly
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
