"""Where a step's configuration comes from. Source: ``kpt.md`` 1.3 and 2.4."""

import posixpath
from collections.abc import Sequence
from typing import Any

from krm.functions.go_text import quoted
from krm.functions.images import parse_image
from krm.functions.package_tree import Package, PackageTree
from krm.functions.pipeline_check import InvalidKptfile, Step
from krm.functions.resource import Resource
from krm.functions.runner import FunctionConfig
from krm.package.yaml_reader import YamlError, read_documents

_INLINE = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "function-input"}}


def check_config(step: Step, package: Package, tree: PackageTree) -> None:
    """Make sure that the step's configuration, if it is a file, is among the package's own resources.

    Raises:
        InvalidKptfile: it is a subpackage's, ignored, or no file that resources are read from.
    """
    path = step.function.config_path
    if not path:
        return
    source = tree.files.get(_root_path(path, package))
    if source is None or source.package != package.path:
        image = step.function.image
        title = parse_image(image).base if image else step.function.exec
        reason = (
            f"functionConfig resource for {step.kind} {quoted(title)} is missing from path {quoted(path)}, "
            f"this also occurs if {quoted(path)} is part of a subpackage"
        )
        raise InvalidKptfile(f"{step.field}.configPath", path, reason)


def load_config(step: Step, package: Package, tree: PackageTree, items: Sequence[Resource]) -> FunctionConfig | None:
    """Return the configuration of a step that was checked, None when it has none.

    A resource among ``items`` whose path is textually the configuration's goes before the file as it was
    read: an earlier step may have changed it.

    Raises:
        InvalidKptfile: the earlier step made something of it that cannot be written.
    """
    function = step.function
    if function.config_map:
        data: dict[str, Any] = {**_INLINE, "data": dict(function.config_map)}
        return FunctionConfig(data, typed=data)
    path = function.config_path
    if not path:
        return None
    cleaned = posixpath.normpath(path)
    for item in items:
        if item.path == path and item.package == package.path:
            try:
                return _read(item.text(), cleaned)
            except (YamlError, UnicodeError) as error:
                raise InvalidKptfile(f"{step.field}.configPath", path, str(error)) from None
    return _read(tree.files[_root_path(path, package)].file.data, cleaned)


def _read(text: str | bytes, path: str) -> FunctionConfig:
    as_text, typed = read_documents(text, as_text=True), read_documents(text)
    document = text if isinstance(text, str) else ""
    return FunctionConfig(as_text[0] if as_text else {}, path, typed=typed[0] if typed else {}, text=document)


def _root_path(path: str, package: Package) -> str:
    return posixpath.join(package.path, posixpath.normpath(path))
