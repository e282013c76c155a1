"""``porch fn eval``: one function on a folder or on standard input. Source: ``kpt.md`` 2.16."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from krm.cli.failures import EXIT_FAILED, CommandFailed, fail
from krm.cli.fn_streams import files_of, read_stdin
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
from krm.functions.evaluation import InputRefused, InvalidConfig, evaluate, file_config, inline_config
from krm.functions.images import is_reference
from krm.functions.package_tree import PackageTree, load_folder
from krm.functions.placement import PlacementError
from krm.functions.render_status import result_list
from krm.functions.resource import Resource
from krm.functions.runner import FunctionConfig
from krm.functions.saved_function import save_function
from krm.functions.step_record import StepRecord
from krm.functions.steps import StepFailed
from krm.functions.write_back import write_back
from krm.package.contents import Contents, File
from krm.package.folder import write_folder
from krm.package.kptfile import Function, Selector

STDIN = "-"
_KPTFILE = "Kptfile"


@dataclass(frozen=True, slots=True)
class EvalOptions:
    """What the command line asks for."""

    folder: str
    """``-`` for standard input."""
    image: str = ""
    exec: str = ""
    tag: str = ""
    config: Path | None = None
    arguments: tuple[str, ...] = ()
    """What stands behind ``--``."""
    match: Selector = field(default_factory=Selector)
    exclude: Selector = field(default_factory=Selector)
    save_as: str = ""
    """``mutator`` or ``validator``; empty when the function is not saved."""
    output: str = ""
    results: Path | None = None
    truncate: bool = True
    runners: RunnerOptions = field(default_factory=RunnerOptions)


@dataclass(slots=True)
class _Input:
    """What the function runs on, and where that is from."""

    resources: list[Resource]
    results: list[dict[str, Any]] = field(default_factory=list)
    folder: Path | None = None
    contents: Contents = field(default_factory=dict)
    tree: PackageTree | None = None
    config_path: str = ""
    """Where in the folder the configuration is; empty when it is not in it."""


def run(options: EvalOptions) -> None:
    """Run the function and leave with exit code 1 when that failed."""
    _check(options)
    given = _input(options)
    function = _function(options, given)
    _require_savable(options, function, given)
    output = FunctionOutput(sys.stderr, truncate=options.truncate)
    try:
        items, record = evaluate(
            given.resources,
            function,
            _config(options),
            runner=runner_of(options.runners),
            commands=command_runner() if options.exec else None,
            observer=output,
            image_prefix=prefix_of(options.runners),
        )
        _write(options, given, items, record)
    except InputRefused as error:
        # Upstream's words, which begin in lower case here.
        click.echo(f"error: {error}", err=True)
        sys.exit(EXIT_FAILED)
    except StepFailed as error:
        _report(options, error.record)
        if error.cause:
            fail(error.cause)
        sys.exit(EXIT_FAILED)
    except PlacementError as error:
        fail(str(error))
    _report(options, record)


def selector(texts: dict[str, str], labels: Sequence[str], annotations: Sequence[str]) -> Selector:
    """Return the selector that flags describe.

    Raises:
        CommandFailed: a label or an annotation is not ``name=value``.
    """
    return Selector(**texts, labels=_pairs(labels), annotations=_pairs(annotations))


def _pairs(texts: Sequence[str]) -> dict[str, str]:
    pairs = {}
    for text in texts:
        for part in text.split(","):
            name, equals, value = part.partition("=")
            if not name or not equals:
                raise CommandFailed(f'"{part}" must be written NAME=VALUE')
            pairs[name] = value
    return pairs


def _check(options: EvalOptions) -> None:
    if bool(options.image) == bool(options.exec):
        raise CommandFailed("must specify one of `--image` and `--exec`: the function to run")
    if options.image and not is_reference(options.image):
        raise CommandFailed(f'function image reference "{options.image}" is invalid')
    if options.config is not None and not options.config.is_file():
        raise CommandFailed(f"missing function config file: {options.config}")
    if options.config is not None and options.arguments:
        raise CommandFailed("function arguments can only be specified without function config file")
    require_new_folder(options.output)


def _input(options: EvalOptions) -> _Input:
    if options.folder == STDIN:
        stream = read_stdin()
        return _Input(stream.resources, stream.results)
    folder = resolved_folder(Path(options.folder))
    contents = read_package(folder)
    config = options.config.resolve() if options.config else None
    config_path = config.relative_to(folder).as_posix() if config and config.is_relative_to(folder) else ""
    tree = load_folder(contents, leave_out=frozenset((config_path,)))
    return _Input(tree.root.resources, [], folder, contents, tree, config_path)


def _function(options: EvalOptions, given: _Input) -> Function:
    config_map = _argument_config(options.arguments)[1] or None
    return Function(
        image=options.image,
        exec=options.exec,
        tag=options.tag,
        config_path=given.config_path or None,
        config_map=config_map,
        selectors=(options.match,) if options.match != Selector() else (),
        exclude=(options.exclude,) if options.exclude != Selector() else (),
    )


def _config(options: EvalOptions) -> FunctionConfig:
    if options.config is None:
        kind, values = _argument_config(options.arguments)
        return inline_config(values, kind)
    try:
        return file_config(options.config.read_bytes(), str(options.config))
    except InvalidConfig as error:
        raise CommandFailed(str(error)) from None


def _argument_config(arguments: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Return the kind and the values of a configuration given as ``[KIND] NAME=VALUE ...``."""
    kind = "ConfigMap"
    if arguments and "=" not in arguments[0]:
        kind, arguments = arguments[0], arguments[1:]
    values = {}
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if not equals:
            raise CommandFailed(f'function argument "{argument}" must be written NAME=VALUE')
        values[name] = value
    return kind, values


def _require_savable(options: EvalOptions, function: Function, given: _Input) -> None:
    """Refuse, before anything runs, what a Kptfile could not say."""
    if not options.save_as:
        return
    if given.folder is None or options.output:
        raise CommandFailed("a function is saved in the Kptfile of a folder, and only when it runs in place")
    if _KPTFILE not in given.contents:
        raise CommandFailed(f'No Kptfile found at "{given.folder}".')
    if options.config is not None and not function.config_path:
        raise CommandFailed(f'function config "{options.config}" must be inside the package to be saved with it')
    if _argument_config(options.arguments)[0] != "ConfigMap":
        raise CommandFailed("a Kptfile holds configurations of kind ConfigMap only: use --fn-config to save another")


def _write(options: EvalOptions, given: _Input, items: list[Resource], record: StepRecord) -> None:
    if options.output in (STDOUT, UNWRAP) or (given.folder is None and not options.output):
        print_resources(items, options.output, [*given.results, *record.results])
        return
    if given.folder is None or given.tree is None:
        write_new_folder(options.output, files_of(items))
        return
    contents, _ = write_back(given.contents, given.tree, items)
    if options.output:
        write_new_folder(options.output, contents)
        return
    said = ""
    if options.save_as and (kptfile := contents.get(_KPTFILE)):
        function = _function(options, given)
        saved = Function(
            image=record.image,
            exec=function.exec,
            config_path=function.config_path,
            config_map=function.config_map,
            selectors=function.selectors,
            exclude=function.exclude,
        )
        prefix = prefix_of(options.runners)
        data, is_update = save_function(kptfile.data, saved, f"{options.save_as}s", prefix=prefix)
        contents[_KPTFILE] = File(data, kptfile.mode)
        verb = "Updated" if is_update else "Added"
        said = f'{verb} "{saved.image or saved.exec}" as {options.save_as} in the Kptfile.'
    write_folder(given.folder, given.contents, contents)
    if said:
        click.echo(said, err=True)


def _report(options: EvalOptions, record: StepRecord) -> None:
    if options.results is not None:
        write_results(options.results, result_list([record]))
