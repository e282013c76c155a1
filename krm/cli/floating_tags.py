"""``porch variants tag``: moves a floating tag from one published package revision to another. Source: ``variants.md`` 2.4."""

from typing import TYPE_CHECKING, Any

from krm.cli.failures import CommandFailed

if TYPE_CHECKING:
    from krm.client.client import KubeClient

Json = dict[str, Any]


async def set_tag(revision: str, tag: str, client: "KubeClient", namespace: str) -> list[str]:
    """Give a revision a tag, then take it from the others of its package; return what was done, line by line.

    In this order the tag is always somewhere. Repeating it after an interruption does the rest.

    Raises:
        CommandFailed: the tag is no name of one, or the revision is not published.
        StatusError, NoAnswer: see ``KubeClient``.
    """
    from krm.client.resources import PACKAGE_REVISIONS
    from krm.meta.names import dns_label_problem
    from krm.variants.revisions import Revision
    from krm.variants.upstream import LATEST_TAG
    from krm.variants.vocabulary import TAG_LABEL_PREFIX

    if tag == LATEST_TAG:
        raise CommandFailed(f'"{LATEST_TAG}" always stands for the latest published revision: nobody sets it')
    if problem := dns_label_problem(tag):
        raise CommandFailed(f'"{tag}" is no name of a tag: {problem}')
    label = f"{TAG_LABEL_PREFIX}{tag}"
    chosen = Revision.of(await client.get(PACKAGE_REVISIONS, namespace, revision))
    if not chosen.is_published:
        raise CommandFailed(f"{revision} is not published: only published revisions have floating tags")
    done = []
    if label not in chosen.labels:
        await _label(client, namespace, revision, label, "")
        done.append(f"{revision} has tag {tag} now\n")
    of_package = f"spec.repository={chosen.repository},spec.packageName={chosen.package}"
    pages = client.list(PACKAGE_REVISIONS, namespace, label_selector=label, field_selector=of_package)
    others = [item["metadata"]["name"] async for page in pages for item in page.items]
    for name in sorted(set(others) - {revision}):
        await _label(client, namespace, name, label, None)
        done.append(f"{name} has it no more\n")
    return done or [f"{revision} has tag {tag} already\n"]


async def _label(client: "KubeClient", namespace: str, name: str, label: str, value: str | None) -> None:
    from krm.client.resources import PACKAGE_REVISIONS

    await client.patch(PACKAGE_REVISIONS, namespace, name, {"metadata": {"labels": {label: value}}})
