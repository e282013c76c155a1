"""``porch fn render``. Source: ``kpt.md`` 2.10, 2.12, 2.13 and 2.16."""

import sys
from dataclasses import dataclass, field
from pathlib import Path

from krm.cli.failures import EXIT_FAILED, CommandFailed, fail
from krm.cli.function_output import FunctionOutput
from krm.cli.function_runners import RunnerOptions, command_runner, prefix_of, runner_of
from krm.cli.package_folder import (
    STDOUT,
    UNWRAP,
    print_resources,
    read_package,
    require_new_folder,
    resolved_folder,
    write_new_folder,
    write_results,
)
from krm.functions.package_tree import load_folder
from krm.functions.pipeline import render
from krm.functions.rendered import Rendered
from krm.package.contents import Contents
from krm.package.folder import write_folder


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """What the command line asks for."""

    folder: Path
    output: str = ""
    """Empty: in place; else a new folder, ``stdout`` or ``unwrap``."""
    results: Path | None = None
    allow_exec: bool = False
    truncate: bool = True
    runners: RunnerOptions = field(default_factory=RunnerOptions)


def run(options: RenderOptions) -> None:
    """Render a package and leave with exit code 1 when that failed."""
    require_new_folder(options.output)
    folder = resolved_folder(options.folder)
    contents = read_package(folder)
    if "Kptfile" not in contents:
        raise CommandFailed(f'No Kptfile found at "{folder}".')
    output = FunctionOutput(sys.stderr, folder.name, truncate=options.truncate)
    rendered = render(
        contents,
        runner_of(options.runners),
        commands=command_runner() if options.allow_exec else None,
        shown=folder.name,
        observer=output,
        image_prefix=prefix_of(options.runners),
        records_status=not options.output,
    )
    _write(options, folder, contents, rendered)
    if output.packages:
        output.summary(failed=rendered.failed)
    if options.results is not None:
        write_results(options.results, rendered.results)
    if rendered.failed:
        if rendered.cause:
            fail(rendered.cause)
        sys.exit(EXIT_FAILED)


def _write(options: RenderOptions, folder: Path, before: Contents, rendered: Rendered) -> None:
    if not options.output:
        write_folder(folder, before, rendered.contents)
    elif rendered.failed:
        return
    elif options.output in (STDOUT, UNWRAP):
        print_resources(load_folder(rendered.contents).root.resources, options.output)
    else:
        write_new_folder(options.output, rendered.contents)
