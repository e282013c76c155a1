"""Packages as porchctl pulls and pushes them: folders, or a ResourceList on standard output and input.

Beside the files lies ``.KptRevisionMetadata``, from which a push takes the resourceVersion.
"""

from pathlib import Path
from typing import Any

import yaml

METADATA = ".KptRevisionMetadata"
Object = dict[str, Any]


def write_folder(folder: Path, found: Object) -> None:
    """Write a pulled package into a folder that does not exist."""
    folder.mkdir(parents=True)
    for path, text in {**found["spec"]["resources"], METADATA: yaml.safe_dump(_metadata(found))}.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def write_list(found: Object) -> list[str]:
    """Return the lines of a ResourceList of a package's KRM files."""
    items = [_placed(_metadata(found), METADATA, 0)]
    for path, text in sorted(found["spec"]["resources"].items()):
        if path.endswith((".yaml", ".yml", "Kptfile")):
            items += [_placed(item, path, at) for at, item in enumerate(yaml.safe_load_all(text))]
    made = {"apiVersion": "config.kubernetes.io/v1", "kind": "ResourceList", "items": items}
    return yaml.safe_dump(made).splitlines()


def read_input(source: str, stdin: str) -> tuple[dict[str, str], Object]:
    """Return the files of a folder, or of a ResourceList on standard input (``-``), and the revision's metadata."""
    if source == "-":
        return _read_list(stdin)
    folder = Path(source)
    files = {str(file.relative_to(folder)): file.read_text() for file in sorted(folder.rglob("*")) if file.is_file()}
    metadata: Object = yaml.safe_load(files.pop(METADATA))["metadata"]
    return files, metadata


def shown_results(status: Object) -> list[str]:
    """Return what is printed of the functions that a push ran."""
    lines: list[str] = []
    for item in (status.get("result") or {}).get("items") or []:
        lines.append(f'[RUNNING] "{item.get("image", "")}" ')
        lines.append(f'[{"FAIL" if item["exitCode"] else "PASS"}] "{item.get("image", "")}"')
        lines += [f"[Results]: {_shown(result)}" for result in item.get("results") or []]
    return lines


def _shown(result: Object) -> str:
    about = result.get("resourceRef") or {}
    named = "/".join(about[key] for key in ("apiVersion", "kind", "namespace", "name") if about.get(key))
    where = [part for part in (named, (result.get("field") or {}).get("path", "")) if part]
    return f"[{result.get('severity') or 'info'}] {' '.join(where)}: {result['message']}"


def _metadata(found: Object) -> Object:
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    metadata = {key: found["metadata"][key] for key in kept if key in found["metadata"]}
    return {"apiVersion": "", "kind": "KptRevisionMetadata", "metadata": metadata}


def _placed(item: Object, path: str, at: int) -> Object:
    """Return a resource with the annotations that say which document of which file it is."""
    metadata = dict(item.get("metadata") or {})
    place = {"index": str(at), "path": path}
    annotations = {f"{prefix}config.kubernetes.io/{key}": place[key] for prefix in ("", "internal.") for key in place}
    return {**item, "metadata": {**metadata, "annotations": {**(metadata.get("annotations") or {}), **annotations}}}


def _read_list(text: str) -> tuple[dict[str, str], Object]:
    files: dict[str, str] = {}
    revision: Object = {}
    for item in yaml.safe_load(text)["items"]:
        annotations = item["metadata"]["annotations"]
        path = annotations["config.kubernetes.io/path"]
        for key in [key for key in annotations if key.endswith(("kubernetes.io/index", "kubernetes.io/path"))]:
            del annotations[key]
        if path == METADATA:
            revision = item["metadata"]
            continue
        if not annotations:
            del item["metadata"]["annotations"]
        documents = [files[path]] if path in files else []
        files[path] = "---\n".join([*documents, yaml.safe_dump(item)])
    return files, revision
