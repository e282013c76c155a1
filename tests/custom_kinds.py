"""CustomResourceDefinitions for tests, and what waits until one is served."""

import asyncio
import time
from typing import Any

from api_fixture import Api
from eventually import PATIENCE

Json = dict[str, Any]
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "example.com"
WIDGETS = f"/apis/{GROUP}/v1/namespaces/default/widgets"


def version(name: str = "v1", *, storage: bool = True, served: bool = True, **more: Any) -> Json:
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "size": {"type": "integer"},
                    "color": {"type": "string", "default": "red"},
                    "replicas": {"type": "integer"},
                },
            },
            "status": {
                "type": "object",
                "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}},
            },
        },
    }
    return {"name": name, "served": served, "storage": storage, "schema": {"openAPIV3Schema": schema}, **more}


def definition(
    *versions: Json,
    kind: str = "Widget",
    plural: str = "widgets",
    group: str = GROUP,
    scope: str = "Namespaced",
    **names: Any,
) -> Json:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": plural, "kind": kind, **names},
            "versions": list(versions or [version()]),
        },
    }


def open_version(name: str = "v1") -> Json:
    """Build a version of a kind whose objects may have any fields."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {"name": name, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}


def readable(group: str, plural: str) -> Json:
    """Build the role that lets the controllers read a kind, which is its administrator's to say."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {
            "name": f"readable-{plural}",
            "labels": {"config.porch.kpt.dev/aggregate-to-injectables": "true"},
        },
        "rules": [{"apiGroups": [group], "resources": [plural], "verbs": ["get", "list", "watch"]}],
    }


def widget(name: str = "one", version_name: str = "v1", **spec: Any) -> Json:
    return {
        "apiVersion": f"{GROUP}/{version_name}",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": spec,
    }


async def establish(api: Api, crd: Json) -> Json:
    """Create a definition, wait until it is Established and return it; a second is what is promised."""
    answer = await api.client.post(DEFINITIONS, json=crd)
    assert answer.status_code == 201, answer.text
    return await until_condition(api, crd["metadata"]["name"], "Established", "True")


async def until_condition(api: Api, name: str, type_: str, status: str, *, seconds: float = PATIENCE) -> Json:
    deadline = time.monotonic() + seconds
    while True:
        crd: Json = (await api.client.get(f"{DEFINITIONS}/{name}")).json()
        found = {one["type"]: one["status"] for one in (crd.get("status") or {}).get("conditions") or ()}
        if found.get(type_) == status:
            return crd
        assert time.monotonic() < deadline, crd
        await asyncio.sleep(0.01)


async def until_gone(api: Api, path: str, *, seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while (await api.client.get(path)).status_code != 404:
        assert time.monotonic() < deadline, path
        await asyncio.sleep(0.01)
