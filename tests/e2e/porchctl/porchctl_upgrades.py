"""How porchctl finds upstreams and what is newer: from tasks, locks and the revisions that are published."""

from collections.abc import Callable
from typing import Any

from porchctl_printing import aligned

Object = dict[str, Any]


def upstream_of(local: Object, get: Callable[[str], Object]) -> str:
    """Follow a revision's creating task to the upstream revision that it has now."""
    task = local["spec"]["tasks"][0]
    while task["type"] == "edit":
        task = get(task["edit"]["sourceRef"]["name"])["spec"]["tasks"][0]
    if task["type"] == "upgrade":
        return str(task["upgrade"]["newUpstreamRef"]["name"])
    return str(task["clone"]["upstreamRef"]["upstreamRef"]["name"])


def newest_upstream(found: list[Object], revision: str) -> str:
    """Return the name of the revision with the wanted number, or with the highest."""
    numbered = {item["spec"].get("revision", 0): item["metadata"]["name"] for item in found}
    return str(numbered[int(revision)] if revision else numbered[max(numbered)])


def upstream_updates(revisions: list[Object], repositories: list[Object], names: list[str]) -> list[str]:
    """Return the table of revisions whose upstream has newer ones."""
    rows: list[list[str]] = []
    for item in revisions:
        name = item["metadata"]["name"]
        if names and name not in names:
            continue
        used = _used(item)
        newer = _newer(item, revisions, repositories)
        if newer:
            rows.append([name, newer[0]["spec"]["repository"], ", ".join(_version(it) for it in newer)])
        else:
            rows.append([name, "", "No update available" if used is not None else ""])
    return aligned([["PACKAGE REVISION", "UPSTREAM REPOSITORY", "UPSTREAM UPDATES"]], rows)


def downstream_updates(revisions: list[Object], repositories: list[Object], _names: list[str]) -> list[str]:
    """Return the table of the newest revisions and who could take them."""
    rows = [
        [newer[-1]["metadata"]["name"], item["metadata"]["name"], f"v{_used(item)}->{_version(newer[-1])}"]
        for item in revisions
        if (newer := _newer(item, revisions, repositories))
    ]
    return aligned([["PACKAGE REVISION", "DOWNSTREAM PACKAGE", "DOWNSTREAM UPDATE"]], rows)


def _lock(item: Object) -> Object:
    lock: Object = item["status"].get("upstreamLock", {}).get("git", {})
    return lock


def _used(item: Object) -> int | None:
    """Return the number of the upstream revision in use; ``drafts/…`` and other refs have none."""
    version = str(_lock(item).get("ref", "")).rpartition("/")[2]
    return int(version[1:]) if version[:1] == "v" and version[1:].isdecimal() else None


def _newer(item: Object, revisions: list[Object], repositories: list[Object]) -> list[Object]:
    """Return the published revisions of an item's upstream that are newer than the one in use."""
    lock, used = _lock(item), _used(item)
    if used is None:
        return []
    url, package = lock["repo"].removesuffix(".git"), lock["ref"].rpartition("/")[0]
    homes = {
        repository["metadata"]["name"]: repository["spec"]["git"].get("directory", "").strip("/")
        for repository in repositories
        if repository["spec"]["git"]["repo"].removesuffix(".git") == url
    }
    found = [it for it in revisions if it["spec"]["repository"] in homes and _path(it, homes) == package]
    newer = [it for it in found if it["spec"].get("revision", 0) > used]
    return sorted(newer, key=lambda it: int(it["spec"]["revision"]))


def _path(item: Object, homes: dict[str, str]) -> str:
    return f"{homes[item['spec']['repository']]}/{item['spec']['packageName']}".strip("/")


def _version(item: Object) -> str:
    return f"v{item['spec']['revision']}"
