"""The examples of the seeds, each in one place: ``tests/data/variants/seed_examples.yaml``, read for unit and end-to-end tests."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import yaml

Object = dict[str, Any]

FILE = Path(__file__).parent / "data" / "variants" / "seed_examples.yaml"
CLUSTERS = {
    "cluster-01": {"region": "useast1", "env": "prod", "org": "hr"},
    "cluster-02": {"region": "uswest1", "env": "prod", "org": "finance"},
    "cluster-03": {"region": "useast2", "env": "prod", "org": "hr"},
    "cluster-04": {"region": "uswest1", "env": "prod", "org": "hr"},
}
"""The repositories of seed 000, and their labels."""
TEAMS = {
    "dev-team-alpha": {"org": "hr", "role": "dev"},
    "dev-team-beta": {"org": "hr", "role": "dev"},
    "prod-team": {"org": "hr", "role": "prod"},
}
"""Objects of ``krm-platform.bigco.com/v1`` Team: two that its example selects, one that it does not."""
SITE = {"environment": "prod", "ns": "blue", "region": "us-east1"}
"""Labels of ``edge1``, the repository that the templates of seed 001 are filled in for."""
FOO = {
    "deployment.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: foo\nspec:\n  replicas: 1\n",
    "endpoints.yaml": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: regional-endpoints\n  annotations:\n"
        "    kpt.dev/config-injection: required\ndata:\n  db: example\n"
    ),
}
BASE_NS = {"namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: example\n"}
"""The blueprints that the examples name; the seeds print none. ``foo`` has a point to inject into."""
POINT = "config.injection.ConfigMap.regional-endpoints"
"""The gate of that point."""
_KEY = re.compile(r"(\w+)(?:\[(\d)\])?")


@cache
def _file() -> Object:
    found: Object = yaml.safe_load(FILE.read_text("utf-8"))
    return found


def blocks(kind: str = "") -> list[Object]:
    """Return the YAML blocks of seed 000, in order: all, or those of a kind (set, variant, variants, kptfile)."""
    return [one for one in _file()["blocks"] if kind in ("", one["kind"])]


def block(id_: str) -> Object:
    """Return a block of seed 000."""
    (found,) = [one for one in blocks() if one["id"] == id_]
    return found


def text_of(example: Object) -> str:
    """Return the manifest of a block: as it is printed, completed by the wrapper, or with what stands for ``...``."""
    text: str = example["text"]
    if text.startswith("spec:"):
        return str(_file()["wrapper"]) + text
    return text.replace("  ...\n", example["elided"]) if "elided" in example else text


def printed(example: Object) -> list[Object]:
    """Return the variants that the seed prints below a set; ``injectors`` as a list (C-27)."""
    found: list[Object] = list(yaml.safe_load_all(block(example["prints"])["text"]))
    for one in found:
        if isinstance(one["spec"].get("injectors"), dict):
            one["spec"]["injectors"] = [one["spec"]["injectors"]]
    return found


def targets() -> list[Object]:
    """Return the targets of seed 001: ``id``, ``target`` and the ``packages`` that they come to."""
    return [{**one, "target": _target(one["text"])} for one in _file()["targets"]]


def templates() -> list[Object]:
    """Return the fields of templates of seed 001: ``id``, ``template``, and what it ``gives`` or how it is ``refused``."""
    return [{**one, "template": _template(one)} for one in _file()["templates"]]


def set_of(name: str, target: Object, upstream: Object) -> Object:
    """Return a PackageVariantSet with one target."""
    return {
        "apiVersion": "config.porch.kpt.dev/v1alpha2",
        "kind": "PackageVariantSet",
        "metadata": {"name": name},
        "spec": {"upstream": upstream, "targets": [target]},
    }


def template_target(example: Object) -> Object:
    """Return the target of an example of a template: the repository ``edge1``, and a package of the example's own."""
    return {
        "repositorySelector": {"matchLabels": {"ns": "blue"}, "packageNames": [package_of(example)]},
        "template": example["template"],
    }


def package_of(example: Object) -> str:
    """Return the package that a template is filled in for, where it does not name another one."""
    return f"for-{example['id']}"


# --- the notation of seed 001 -----------------------------------------------------------------------------


def _target(text: str) -> Object:
    """Read ``Target.Field = value``: a value in YAML, whose fields begin with capitals as in Go."""
    name, _, value = text.partition(" = ")
    return {_decapitalized(name.removeprefix("Target.")): _as_json(yaml.safe_load(value))}


def _as_json(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_json(one) for one in value]
    return {_decapitalized(key): _as_json(one) for key, one in value.items()} if isinstance(value, dict) else value


def _decapitalized(name: str) -> str:
    return "apiVersion" if name == "APIVersion" else name[0].lower() + name[1:]


def _template(example: Object) -> Object:
    """Read ``path.of[0].field: value``."""
    ((path, value),) = yaml.safe_load(example["text"]).items()
    for key, place in reversed(_KEY.findall(path)):
        value = {key: [value] if place else value}
    found: Object = _merged(example.get("with") or {}, value)
    return found


def _merged(one: Any, other: Any) -> Any:
    if isinstance(one, dict) and isinstance(other, dict):
        return {key: _merged(one.get(key), other.get(key)) for key in {**one, **other}}
    if isinstance(one, list) and isinstance(other, list):
        return [_merged(*pair) for pair in zip(one, other, strict=True)]
    return one if other is None else other
