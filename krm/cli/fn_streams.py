"""``porch fn source`` and ``porch fn sink``: folders to ResourceLists, and back. Source: ``kpt.md`` 2.16."""

import sys
from pathlib import Path

from krm.cli.failures import CommandFailed
from krm.cli.package_folder import print_resources, read_package, require_new_folder, resolved_folder, write_new_folder
from krm.functions.external.annotation_reconciliation import AnnotationMismatch
from krm.functions.external.resource_stream import ResourceStream, read_stream
from krm.functions.package_tree import PackageTree, load_folder
from krm.functions.placement import PlacementError, refuse_duplicates, settle
from krm.functions.resource import Resource
from krm.functions.write_back import write_back
from krm.package.contents import MAX_TOTAL_BYTES, File


def source(folder: Path, output: str) -> None:
    """Print the resources of a folder."""
    contents = read_package(resolved_folder(folder))
    print_resources(load_folder(contents).root.resources, output)


def sink(folder: str) -> None:
    """Write the resources of standard input to a folder that does not exist yet."""
    require_new_folder(folder)
    write_new_folder(folder, files_of(read_stdin().resources))


def read_stdin() -> ResourceStream:
    """Read the resources that another command wrote.

    Raises:
        CommandFailed: there is too much of it, or its items contradict themselves.
    """
    data = sys.stdin.buffer.read(MAX_TOTAL_BYTES + 1)
    if len(data) > MAX_TOTAL_BYTES:
        raise CommandFailed(f"standard input is larger than {MAX_TOTAL_BYTES >> 20} MiB")
    try:
        return read_stream(data)
    except AnnotationMismatch as error:
        raise CommandFailed(str(error)) from None


def files_of(resources: list[Resource]) -> dict[str, File]:
    """Return the files of resources that come from nowhere; those without a path get their default one.

    Raises:
        CommandFailed: a path leaves the folder, or two resources want the same place.
    """
    try:
        settle(resources, {}, "")
        refuse_duplicates(resources)
        return write_back({}, PackageTree(load_folder({}).root, {}), resources)[0]
    except PlacementError as error:
        raise CommandFailed(str(error)) from None
