"""The function ``starlark``: runs the script in its configuration on the resources. Source: ``kpt.md`` 4.9."""

import atexit
import json
import os
import re
from typing import Any

from krm.functions.builtin import Behaviour, Builtin, Option
from krm.functions.catalog.config_values import FN_GROUP, ConfigKind
from krm.functions.catalog.starlark.worker_process import Answer, WorkerDied, WorkerNotStarted, WorkerProcess
from krm.functions.external.annotation_reconciliation import AnnotationMismatch
from krm.functions.external.resource_list import (
    API_VERSION,
    KIND,
    MalformedResourceList,
    items_for_function,
    resources_from_function,
)
from krm.functions.images import Image, Version
from krm.functions.runner import FunctionConfig, FunctionResult, ResourceList
from krm.package.yaml_reader import plain_copy

_FAILED = "failed to evaluate function: error: function failure"
_MISSPELLED_BEFORE = (0, 5, 1)
_LONG_NUMBER = re.compile("[0-9]{19}")
_FITS = range(-(1 << 63), 1 << 64)
"""Integers that the interpreter reads from JSON as they are; it makes larger ones to floats."""


class _BadConfig(ValueError):
    """The configuration holds no script."""


def run_script(worker: WorkerProcess, resources: ResourceList, version: Version) -> FunctionResult:
    """Run the configured script on ``resources`` in ``worker``.

    The script sees each resource with the annotations of ``kpt.md`` 2.5. Resources it returns are recognised
    by their id annotation; keys keep the order they had, new ones are in alphabetical order. Any failure is one
    result of severity error.
    """
    try:
        source = _source(resources.config)
        answer, recorded = _evaluate(worker, resources, source, _program(resources.config, version))
    except (_BadConfig, WorkerDied, WorkerNotStarted, AnnotationMismatch) as error:
        return _failure(resources, str(error))
    except (ValueError, RecursionError) as error:
        return _failure(resources, f"the script could not be run: {error}")
    if answer.error:
        return _failure(resources, answer.error, answer.printed)
    try:
        items = json.loads(answer.items, object_pairs_hook=lambda pairs: dict(sorted(pairs)))
        _set_numbers(items, answer.numbers)
        output = resources_from_function(items, resources.items, recorded)
    except (MalformedResourceList, AnnotationMismatch, ValueError, RecursionError) as error:
        return _failure(resources, str(error), answer.printed)
    return FunctionResult(output, stderr=answer.printed)


def _source(config: FunctionConfig | None) -> str:
    if config is None:
        raise _BadConfig("FunctionConfig is missing. Expect `ConfigMap` or `StarlarkRun`")
    kind = ConfigKind.of(config)
    if kind.is_config_map:
        data = config.data.get("data")
        source = data.get("source") if isinstance(data, dict) else None
    elif (kind.kind, kind.group) == ("StarlarkRun", FN_GROUP):
        source = config.data.get("source")
    else:
        got = f"{config.data.get('apiVersion') or ''}, Kind={kind.kind}"
        raise _BadConfig(
            f"`functionConfig` must be either /v1, Kind=ConfigMap or {FN_GROUP}/v1alpha1, Kind=StarlarkRun, "
            f"but we got: {got if kind.group else '/' + got}"
        )
    if not isinstance(source, str) or not source:
        raise _BadConfig("`source` must not be empty")
    return source


def _program(config: FunctionConfig | None, version: Version) -> str:
    """Return the script's name in messages; the first releases misspelled the default."""
    metadata = config.data.get("metadata") if config else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    default = "stalark-function-run" if version < _MISSPELLED_BEFORE else "starlark-function-run"
    return name if isinstance(name, str) and name else default


def _evaluate(worker: WorkerProcess, resources: ResourceList, source: str, program: str) -> tuple[Answer, Any]:
    items, recorded = items_for_function(resources.items)
    config = resources.config.typed or resources.config.data if resources.config else None
    given = {"apiVersion": API_VERSION, "kind": KIND, "items": items, "functionConfig": config}
    document = json.dumps(given, ensure_ascii=False)
    numbers = []
    if "NaN" in document or "Infinity" in document or _LONG_NUMBER.search(document):
        given = plain_copy(given)  # the configuration in it belongs to others
        numbers = _unusual_numbers(given, [])
        _set_numbers(given, [(path, "0") for path, _ in numbers])
        document = json.dumps(given, ensure_ascii=False)
    return worker.evaluate({"program": program, "source": source, "numbers": numbers}, document), recorded


def _unusual_numbers(data: Any, path: list[Any]) -> list[tuple[list[Any], str]]:
    """Return the place and the text of each number that does not survive JSON on its way to the interpreter."""
    if isinstance(data, (dict, list)):
        inner = data.items() if isinstance(data, dict) else enumerate(data)
        return [found for step, value in inner for found in _unusual_numbers(value, [*path, step])]
    if isinstance(data, float) and not float("-inf") < data < float("inf"):
        return [(path, repr(data))]
    if isinstance(data, int) and data not in _FITS:
        return [(path, str(data))]
    return []


def _set_numbers(data: Any, numbers: list[tuple[list[Any], str]]) -> None:
    for path, text in numbers:
        at = data
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = float(text)


def _failure(resources: ResourceList, message: str, printed: str = "") -> FunctionResult:
    result = {"message": message, "severity": "error"}
    return FunctionResult.failure(resources, [result], "\n".join(filter(None, (printed, _FAILED))))


_shared = WorkerProcess()
"""For runners that bring no worker of their own; its process starts with the first script."""
atexit.register(_shared.close)
os.register_at_fork(after_in_child=_shared.disown)


def _run(resources: ResourceList, _image: Image, version: Version) -> FunctionResult:
    return run_script(_shared, resources, version)


FUNCTION = Builtin(
    name="starlark",
    run=_run,
    summary="Runs a Starlark script that changes, adds and removes resources, or fails.",
    source="kpt.md 4.9",
    tags=("v0.4.3", "v0.5.0", "v0.5.1", "v0.5.2", "v0.5.5"),
    config_kinds=("StarlarkRun.fn.kpt.dev", "ConfigMap"),
    options=(
        Option("source", "the script; in a ConfigMap `data.source`", required=True),
        Option("params", 'free-form values, read as `ctx.resource_list["functionConfig"]["params"]`'),
    ),
    behaviours=(
        Behaviour("v0.4.3, v0.5.0", "a script without a name is called `stalark-function-run` in messages"),
        Behaviour("v0.5.1 and later, latest", "a script without a name is called `starlark-function-run`"),
    ),
)
