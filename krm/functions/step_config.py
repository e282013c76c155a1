"""Where a step's configuration comes from. Source: ``kpt.md`` 1.3 and 2.4."""

import posixpath
from collections.abc import Sequence
from typing import Any

from krm.functions.images import parse_image
from krm.functions.package_tree import Package, PackageTree
from krm.functions.pipeline_check import InvalidKptfile, Step
from krm.functions.resource import Resource
from krm.functions.runner import FunctionConfig
from krm.package.resource_identity import krm_problem
from krm.package.yaml_reader import YamlError, read_documents

_INLINE = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "function-input"}}


def load_config(step: Step, package: Package, tree: PackageTree, items: Sequence[Resource]) -> FunctionConfig | None:
    """Return the step's configuration, None when it has none.

    A resource among ``items`` whose path is textually the configuration's goes before the file as it was
    read: an earlier step may have changed it.

    Raises:
        InvalidKptfile: the file is missing, in a subpackage, or not one KRM document.
    """
    function = step.function
    if function.config_map:
        data = {**_INLINE, "data": dict(function.config_map)}
        return FunctionConfig(data, typed=data)
    path = function.config_path
    if path is None:
        return None
    text, data = _read(step, path, package, tree)
    for item in items:
        if item.package == package.path and item.path == path:
            documents = read_documents(item.text(), as_text=True)
            text, data = (item.text(), documents[0]) if documents else (text, data)
            break
    return FunctionConfig(data, posixpath.normpath(path), typed=read_documents(text)[0])


def _read(step: Step, path: str, package: Package, tree: PackageTree) -> tuple[str, dict[str, Any]]:
    """Return the configuration's text and its data, all scalars as text."""
    field = f"{step.field}.configPath"
    source = tree.files.get(posixpath.join(package.path, posixpath.normpath(path)))
    if source is None or source.package != package.path:
        title = parse_image(step.function.image).base
        reason = (
            f'functionConfig resource for {step.kind} "{title}" is missing from path "{path}", '
            f'this also occurs if "{path}" is part of a subpackage'
        )
        raise InvalidKptfile(field, path, reason)
    text = "".join(source.pieces)
    try:
        documents = read_documents(text, as_text=True)
    except YamlError as error:
        raise InvalidKptfile(field, path, str(error)) from None
    if len(documents) > 1:
        reason = f'functionConfig "{path}" must not contain more than one config, got {len(documents)}'
        raise InvalidKptfile(field, path, reason)
    data = documents[0] if documents else None
    if not isinstance(data, dict) or (problem := krm_problem(data, path)):
        problem = problem if isinstance(data, dict) else krm_problem(data, "")
        raise InvalidKptfile(field, path, problem)
    return text, data
