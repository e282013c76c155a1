"""Every script of Nephio's catalog runs, at the tag that its package asks for."""

import io
import tarfile
from pathlib import Path, PurePosixPath

import pytest

from krm.functions.builtins import BuiltinRunner
from krm.functions.resource import Resource
from krm.functions.runner import FunctionConfig, ResourceList
from krm.package.documents import read_file

CATALOG = Path(__file__).parents[4] / "data" / "nephio-catalog.tar.xz"


def _packages() -> dict[str, list[Resource]]:
    """The resources of each package that has a script, by its directory."""
    files: dict[str, dict[str, bytes]] = {}
    with tarfile.open(fileobj=io.BytesIO(CATALOG.read_bytes()), mode="r:xz") as archive:
        for member in archive:
            content = archive.extractfile(member) if member.name.endswith((".yaml", "Kptfile")) else None
            if content is not None:
                path = PurePosixPath(member.name)
                files.setdefault(str(path.parent), {})[path.name] = content.read()
    scripted = {
        at: inside for at, inside in files.items() if any(b"kind: StarlarkRun" in data for data in inside.values())
    }
    return {at: _resources(inside) for at, inside in scripted.items()}


def _resources(files: dict[str, bytes]) -> list[Resource]:
    return [
        Resource.of_document(document.data, document.text, path=name, index=index)
        for name, data in files.items()
        for index, document in enumerate(read_file(data)[1])
        if isinstance(document.data, dict) and "apiVersion" in document.data
    ]


PACKAGES = _packages()


@pytest.mark.parametrize("package", sorted(PACKAGES))
@pytest.mark.parametrize("tag", ["v0.4.3", "v0.5.0", "latest"])
def test_scripts_of_nephio_run_and_keep_what_they_do_not_touch(package: str, tag: str) -> None:
    items = [item.copy() for item in PACKAGES[package]]
    before = [item.text() for item in items]
    config = next(item.data for item in items if item.data["kind"] == "StarlarkRun")

    result = BuiltinRunner().run(
        f"gcr.io/kpt-fn/starlark:{tag}", ResourceList(items, FunctionConfig(config, typed=config))
    )

    assert result.results == []
    assert result.items == items
    changed = sum(old != item.text() for old, item in zip(before, items, strict=True))
    assert changed < len(items)
    assert bool(changed) != package.endswith("webui")  # edits what gen-configmap would have made before
