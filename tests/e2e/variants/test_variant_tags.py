"""Upstreams that move: floating tags, "latest", and what comes to the drafts of whoever follows them.

Source: ``variants.md`` 2.3, 2.4, G-U06 to G-U09; C-01, C-02. A tag is a label on a package revision, or a Git tag
``<package>/<tag>`` that is moved by force.
"""

from collections.abc import AsyncIterator

import pytest
from git_server import GitServer
from golden import golden
from porch_client import PORCH
from porch_process import PorchProcess
from remotes import git
from variant_fixture import Rig, variant_rig
from variant_place import CONFIG_MAP, Json, blueprint, upstream, variant, with_blueprint

FIRST, SECOND = "deployments.bar.packagevariant-1", "deployments.bar.packagevariant-2"
OPENED = "PUT PR bar.packagevariant-1 True"
CLONED = ["POST PR bar.packagevariant-1 False", OPENED]
UPGRADED = ["POST PR bar.packagevariant-2 False", "PUT PR bar.packagevariant-2 True"]
LABEL = "tags.porch.kpt.dev/stable"
READY = ("True", "NoErrors", "successfully ensured downstream package variant")


@pytest.fixture
async def rig(porch_server: PorchProcess, git_http: GitServer, namespace: str) -> AsyncIterator[Rig]:
    """A place with the two repositories, revisions 1 to 3 of the blueprint, and a controller."""
    async with variant_rig(porch_server, git_http, namespace) as made:
        with_blueprint(made)
        for number in (2, 3):
            made.new_upstream(number)
        yield made


def tag(rig: Rig, number: int, *, on: bool = True) -> None:
    """Put the label of the tag on a revision of the blueprint, or take it off."""
    patch: Json = {"metadata": {"labels": {LABEL: "x" if on else None}}}
    rig.patch(PORCH, "packagerevisions", f"blueprints.foo.v{number}", patch)


def move(rig: Rig, old: int, new: int) -> None:
    """Move the tag as its owner is told to: first on, then off."""
    tag(rig, new)
    tag(rig, old, on=False)


def size(rig: Rig, name: str = FIRST) -> str:
    text = rig.files(name)["settings.yaml"]
    return text.split("size: ")[1].split("\n")[0]


@golden("G-U08")
async def test_a_draft_follows_its_tag_in_place(rig: Rig) -> None:
    tag(rig, 2)
    rig.add_variant(variant(upstream=upstream(tag="stable")))
    assert await rig.settle() == CLONED
    assert size(rig) == "size-2"
    told = rig.variant()["status"]["upstream"]
    assert (told["name"], told["revision"], told["tag"]) == ("blueprints.foo.v2", 2, "stable")
    await rig.quiet()

    move(rig, 2, 3)

    written = await rig.settle()
    assert written[-1] == OPENED
    assert rig.revisions_of("bar") == {"packagevariant-1": "Draft"}
    assert size(rig) == "size-3"
    assert rig.variant()["status"]["upstream"]["name"] == "blueprints.foo.v3"
    assert rig.variant()["metadata"]["generation"] == 1, "nobody edited the variant"
    await rig.quiet()


@golden("G-U08", "2.4.backwards")
async def test_a_published_package_is_upgraded_forwards_and_backwards_with_its_tag(rig: Rig) -> None:
    tag(rig, 3)
    rig.add_variant(variant(upstream=upstream(tag="stable")))
    await rig.settle()
    rig.approve(FIRST)
    await rig.settle()

    tag(rig, 3, on=False)
    tag(rig, 1)

    assert await rig.settle() == UPGRADED
    block = rig.revision(SECOND)["spec"]["tasks"][0]["upgrade"]
    assert block["oldUpstreamRef"]["name"] == "blueprints.foo.v3"
    assert block["newUpstreamRef"]["name"] == "blueprints.foo.v1"
    assert size(rig, SECOND) == "small"
    await rig.quiet()


@golden("2.4.2")
async def test_of_two_revisions_with_the_tag_the_highest_counts(rig: Rig) -> None:
    tag(rig, 1)
    tag(rig, 2)
    rig.add_variant(variant(upstream=upstream(tag="stable")))

    await rig.settle()

    assert size(rig) == "size-2"
    await rig.quiet()


@golden("G-U09", "2.4.3")
async def test_a_git_tag_that_is_moved_by_force_is_followed(rig: Rig) -> None:
    rig.push("blueprints", {"foo@beta": {**blueprint(), "settings.yaml": CONFIG_MAP.replace("small", "beta-1")}})
    rig.sync("blueprints")
    rig.add_variant(variant(upstream=upstream(tag="beta")))
    assert await rig.settle() == CLONED
    assert size(rig) == "beta-1"
    before = rig.revision(FIRST)["status"]["upstreamLock"]["git"]["commit"]
    await rig.quiet()

    rig.push("blueprints", {"foo@beta": {**blueprint(), "settings.yaml": CONFIG_MAP.replace("small", "beta-2")}})
    rig.sync("blueprints")

    assert (await rig.settle())[-1] == OPENED
    assert size(rig) == "beta-2"
    assert rig.revision(FIRST)["status"]["upstreamLock"]["git"]["commit"] != before
    await rig.quiet()


@golden("G-L04", "2.4.retag")
async def test_a_numbered_tag_that_is_moved_by_force_is_an_upgrade(rig: Rig) -> None:
    """The force retagging of seed 000: same revision, same ref, another commit."""
    rig.push("blueprints", {"other@v1": blueprint("other")})
    rig.sync("blueprints")
    rig.add_variant(variant(upstream=upstream("other", revision=1)))
    await rig.settle()
    rig.approve(FIRST)
    await rig.settle()

    rig.push("blueprints", {"other@v1": blueprint("other", settings_yaml=CONFIG_MAP.replace("small", "again"))})
    rig.sync("blueprints")

    assert await rig.settle() == UPGRADED
    assert size(rig, SECOND) == "again"
    await rig.quiet()


@golden("2.4.same-commit")
async def test_the_same_commit_under_another_name_is_up_to_date(rig: Rig) -> None:
    remote = rig.remotes["blueprints"].path
    rig.add_variant(variant(upstream=upstream(revision=3)))
    await rig.settle()
    git("update-ref", "refs/tags/foo/release", "refs/tags/foo/v3", cwd=remote)
    rig.sync("blueprints")
    assert rig.exists("blueprints.foo.release")

    rig.change_variant(upstream=upstream(tag="release"))

    assert await rig.settle() == []
    assert rig.variant()["status"]["upstream"]["name"] == "blueprints.foo.release"
    assert rig.condition("Ready") == READY
    await rig.quiet()


@golden("2.4.4")
async def test_a_tag_that_nobody_has_stalls_the_variant_until_somebody_has_it(rig: Rig) -> None:
    rig.add_variant(variant(upstream=upstream(tag="stable")))

    assert await rig.settle() == []

    assert rig.condition("Stalled") == (
        "True",
        "UpstreamNotFound",
        'could not find upstream package revision for tag "stable" of blueprints/foo',
    )
    tag(rig, 1)
    assert await rig.settle() == CLONED
    assert rig.condition("Stalled")[0] == "False"
    await rig.quiet()


@golden("2.4.debounce", "I2")
async def test_many_moves_of_a_tag_are_one_draft(rig: Rig) -> None:
    tag(rig, 1)
    rig.add_variant(variant(upstream=upstream(tag="stable")))
    await rig.settle()
    rig.approve(FIRST)
    await rig.settle()

    for old, new in ((1, 2), (2, 3), (3, 1), (1, 2), (2, 3)):
        move(rig, old, new)
        await rig.settle()

    assert rig.revisions_of("bar") == {"packagevariant-1": "Published", "packagevariant-2": "Draft"}
    assert size(rig, SECOND) == "size-3"
    assert rig.condition("Ready") == READY
    await rig.quiet()


@golden("G-U06", "C-01", "2.4.1")
@pytest.mark.parametrize("selector", [{}, {"revision": "latest"}, {"tag": "latest"}], ids=["unset", "revision", "tag"])
async def test_latest_is_followed_and_a_fall_back_is_not(rig: Rig, selector: Json) -> None:
    rig.add_variant(variant(upstream=upstream(**selector)))
    await rig.settle()
    assert size(rig) == "size-3"
    rig.new_upstream(4)
    assert (await rig.settle())[-1] == OPENED
    assert size(rig) == "size-4"
    rig.approve(FIRST)
    await rig.settle()

    rig.edit("blueprints.foo.v4", lambda body: body["spec"].update(lifecycle="DeletionProposed"))

    assert await rig.settle() == []
    assert rig.condition("Ready") == READY
    assert "UpstreamWentBackwards" in [reason for _, reason, _ in rig.events.seen]
    await rig.quiet()


@golden("2.4.allowDowngrade")
async def test_a_fall_back_of_latest_is_followed_where_that_is_allowed(rig: Rig) -> None:
    rig.add_variant(variant(upstream=upstream(revision="latest", allowDowngrade=True)))
    await rig.settle()
    rig.approve(FIRST)
    await rig.settle()
    rig.edit("blueprints.foo.v3", lambda body: body["spec"].update(lifecycle="DeletionProposed"))

    assert await rig.settle() == UPGRADED

    assert size(rig, SECOND) == "size-2"
    await rig.quiet()


@golden("C-02", "G-U02")
async def test_a_workspace_wins_over_a_revision_that_says_otherwise(rig: Rig) -> None:
    rig.add_variant(variant(upstream=upstream(workspaceName="v2", revision=3)))

    await rig.settle()

    assert size(rig) == "size-2"
    assert "UpstreamRevisionIgnored" in [reason for _, reason, _ in rig.events.seen]
    await rig.quiet()


@golden("G-U05", "C-21")
@pytest.mark.parametrize("revision", ["v1", 1, "1"])
async def test_a_revision_is_found_in_every_spelling(rig: Rig, revision: str | int) -> None:
    rig.add_variant(variant(upstream=upstream(revision=revision)))

    await rig.settle()

    assert size(rig) == "small"
    assert rig.variant()["spec"]["upstream"]["revision"] == revision, "as its user wrote it"
    await rig.quiet()


@golden("2.3.deletion-proposed")
async def test_an_upstream_that_is_proposed_for_deletion_is_used_with_a_warning(rig: Rig) -> None:
    rig.edit("blueprints.foo.v2", lambda body: body["spec"].update(lifecycle="DeletionProposed"))
    rig.add_variant(variant(upstream=upstream(revision=2)))

    assert await rig.settle() == CLONED

    assert "Warning" in [kind for kind, _, _ in rig.events.seen]
    await rig.quiet()


@golden("G-U07")
async def test_an_old_string_revision_is_a_workspace(rig: Rig) -> None:
    rig.push("blueprints", {"foo@v2.0.0": {**blueprint(), "settings.yaml": CONFIG_MAP.replace("small", "old-style")}})
    rig.sync("blueprints")
    rig.add_variant(variant(upstream=upstream(revision="v2.0.0")))

    assert await rig.settle() == CLONED

    assert size(rig) == "old-style"
    await rig.quiet()
