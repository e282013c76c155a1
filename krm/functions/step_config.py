"""Where a step's configuration comes from. Source: ``kpt.md`` 1.3 and 2.4."""

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from krm.functions.go_text import quoted
from krm.functions.images import parse_image
from krm.functions.package_tree import Package, PackageTree
from krm.functions.pipeline_check import InvalidKptfile, Step
from krm.functions.resource import Resource
from krm.functions.runner import FunctionConfig
from krm.package.yaml_reader import YamlError, read_documents

_INLINE = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "function-input"}}


@dataclass(slots=True)
class StepConfigs:
    """The configurations of all steps of one render; a file that steps share is read once."""

    tree: PackageTree
    _last: dict[str, tuple[str | bytes, FunctionConfig]] = field(default_factory=dict)
    """File, by its path relative to the root package → what was read of it last, and as what."""

    def check(self, step: Step, package: Package) -> None:
        """Make sure that the step's configuration, if it is a file, is among the package's own resources.

        Raises:
            InvalidKptfile: it is a subpackage's, ignored, or no file that resources are read from.
        """
        path = step.function.config_path
        if not path:
            return
        source = self.tree.files.get(_root_path(path, package))
        if source is None or source.package != package.path:
            image = step.function.image
            title = parse_image(image).base if image else step.function.exec
            reason = (
                f"functionConfig resource for {step.kind} {quoted(title)} is missing from path {quoted(path)}, "
                f"this also occurs if {quoted(path)} is part of a subpackage"
            )
            raise InvalidKptfile(f"{step.field}.configPath", path, reason)

    def load(self, step: Step, package: Package, items: Sequence[Resource]) -> FunctionConfig | None:
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
        for item in items:
            if item.path == path and item.package == package.path:
                try:
                    return self._read(item.text(), path, package)
                except (YamlError, UnicodeError) as error:
                    raise InvalidKptfile(f"{step.field}.configPath", path, str(error)) from None
        return self._read(self.tree.files[_root_path(path, package)].file.data, path, package)

    def _read(self, text: str | bytes, path: str, package: Package) -> FunctionConfig:
        place = _root_path(path, package)
        known, config = self._last.get(place, (None, None))
        if config is None or known != text:
            as_text, typed = read_documents(text, as_text=True), read_documents(text)
            config = FunctionConfig(
                as_text[0] if as_text else {},
                posixpath.normpath(path),
                typed=typed[0] if typed else {},
                # Only a resource's text is one document; a file may hold more.
                text=text if isinstance(text, str) else "",
            )
            self._last[place] = text, config
        return config


def _root_path(path: str, package: Package) -> str:
    return posixpath.join(package.path, posixpath.normpath(path))
