"""The life of one downstream package under a PackageVariant: made, mutated, upgraded, edited; each write and its order.

Source: ``variants.md`` 5.8, 2.6, 2.8, 2.10, 2.11. Every case ends with ``quiet``: two further passes, the second by a
controller that starts anew, write nothing (G-F09, I1).
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import yaml
from drafts import accepted, refused
from git_server import GitServer
from golden import golden
from porch_process import PorchProcess
from variant_fixture import Rig, variant_rig
from variant_place import (
    CONFIG_MAP,
    GATE,
    NO_FUNCTION,
    SET_LABELS,
    SET_NAMESPACE,
    blueprint,
    condition_of,
    gates_of,
    kptfile,
    owners_of,
    upstream,
    variant,
    with_blueprint,
)

CHANGE_SUMMARY = "config.porch.kpt.dev/change-summary"
FIRST, SECOND = "deployments.bar.packagevariant-1", "deployments.bar.packagevariant-2"
LABELS = {"mutators": [SET_LABELS]}
NAMESPACE = {"mutators": [SET_NAMESPACE]}
BROKEN = {"mutators": [NO_FUNCTION]}
CLONED = ["POST PR bar.packagevariant-1 False", "PUT PR bar.packagevariant-1 True"]
CLONED_AND_MUTATED = [CLONED[0], "PUT PRR bar.packagevariant-1", CLONED[1]]
READY = ("True", "NoErrors", "successfully ensured downstream package variant")
VALID = ("False", "Valid", "all validation checks passed")


@pytest.fixture
async def rig(porch_server: PorchProcess, git_http: GitServer, namespace: str) -> AsyncIterator[Rig]:
    """A place of the test's own with a controller."""
    async with variant_rig(porch_server, git_http, namespace) as made:
        yield made


async def published(rig: Rig, **spec: Any) -> None:
    """Have a variant made, and its first revision approved."""
    with_blueprint(rig)
    rig.add_variant(variant(**spec))
    await rig.settle()
    rig.approve(FIRST)
    assert await rig.settle() == []


@golden("G-F01", "G-F09", "G-D01")
async def test_a_new_variant_is_cloned_and_its_gate_opened(rig: Rig) -> None:
    with_blueprint(rig)
    made = rig.add_variant(variant(labels={"team": "a"}, annotations={"note": "b"}))

    assert await rig.settle() == CLONED

    assert (rig.condition("Ready"), rig.condition("Stalled")) == (READY, VALID)
    assert rig.targets() == [FIRST]
    draft = rig.revision(FIRST)
    owner = {"apiVersion": "config.porch.kpt.dev/v1alpha1", "kind": "PackageVariant", "name": "my-pv"}
    assert draft["metadata"]["ownerReferences"] == [{**owner, "uid": made["metadata"]["uid"], "controller": True}]
    labels = draft["metadata"]["labels"]
    assert labels == {"team": "a", "config.porch.kpt.dev/packagevariant-uid": made["metadata"]["uid"]}
    assert draft["metadata"]["annotations"]["note"] == "b"
    task = {"type": "clone", "clone": {"upstreamRef": {"upstreamRef": {"name": "blueprints.foo.v1"}}}}
    assert draft["spec"]["tasks"] == [task]
    assert GATE in gates_of(draft)
    told = condition_of(draft, GATE)
    assert (told["status"], told["reason"]) == ("True", "PVOperationsSucceeded")
    assert told["message"] == "all package variant operations completed successfully"
    status = rig.variant()["status"]
    assert status["observedGeneration"] == 1
    assert (status["upstream"]["name"], status["upstream"]["revision"]) == ("blueprints.foo.v1", 1)
    assert status["downstreamTargets"][0]["renderStatus"] == {"error": "", "result": {"exitCode": 0}}
    await rig.quiet()
    pushed = rig.pushed("bar", "packagevariant-1")
    assert "status: 'True'" in pushed["Kptfile"] or 'status: "True"' in pushed["Kptfile"]


@golden("G-F01", "C-31", "G-V03")
async def test_the_draft_is_created_with_its_gate_closed_and_the_spec_stays_as_written(rig: Rig) -> None:
    with_blueprint(rig)
    rig.add_variant(variant())
    await rig.settle()

    body = rig.writes_of("POST", "packagerevisions")[0].body
    told = condition_of(body, GATE)
    assert body["spec"]["readinessGates"] == [{"conditionType": GATE}]
    assert (told["status"], told["reason"]) == ("False", "PVOperationsPending")
    assert told["message"] == 'waiting for package variant "my-pv" to finish its operations'
    assert rig.variant()["spec"] == variant()["spec"], "no defaults are written back"
    assert rig.variant()["metadata"]["finalizers"] == ["config.porch.kpt.dev/packagevariants"]
    await rig.quiet()


@golden("G-F02", "G-P01", "G-N02")
async def test_a_pipeline_is_written_between_create_and_open(rig: Rig) -> None:
    """The example of seed 000: two functions, the second without a name."""
    with_blueprint(rig)
    functions = [{**SET_NAMESPACE, "name": "my-func"}, SET_LABELS]
    rig.add_variant(variant(pipeline={"mutators": functions}))

    assert await rig.settle() == CLONED_AND_MUTATED

    files = rig.pushed("bar", "packagevariant-1")
    written = yaml.safe_load(files["Kptfile"])["pipeline"]["mutators"]
    assert written == [
        {**SET_NAMESPACE, "name": "PackageVariant.my-pv.my-func.0"},
        {**SET_LABELS, "name": "PackageVariant.my-pv..1"},
    ]
    settings = yaml.safe_load(files["settings.yaml"])["metadata"]
    assert (settings["namespace"], settings["labels"]) == ("my-ns", {"app": "foo"}), "the functions ran"
    assert condition_of(rig.revision(FIRST), GATE)["status"] == "True"
    assert condition_of(rig.revision(FIRST), "PackagePipelinePassed")["status"] == "True"
    await rig.quiet()


@golden("G-C12", "G-C02")
async def test_package_context_is_set_beside_what_the_server_writes(rig: Rig) -> None:
    with_blueprint(rig)
    rig.add_variant(variant(packageContext={"data": {"param1": "val1", "param2": "val2"}, "removeKeys": ["gone"]}))

    assert await rig.settle() == CLONED_AND_MUTATED

    data = yaml.safe_load(rig.pushed("bar", "packagevariant-1")["package-context.yaml"])["data"]
    assert data == {"name": "bar", "package-path": data["package-path"], "param1": "val1", "param2": "val2"}
    await rig.quiet()


@golden("G-F03")
async def test_a_render_that_fails_leaves_the_draft_closed_and_is_tried_again_on_it(rig: Rig) -> None:
    with_blueprint(rig)
    rig.add_variant(variant(pipeline=BROKEN))

    first = await rig.reconcile()

    assert first.packages[:2] == CLONED_AND_MUTATED[:2]
    draft = rig.revision(FIRST)
    assert condition_of(draft, GATE)["status"] == "False"
    assert condition_of(draft, GATE)["reason"] == "PVOperationsFailed"
    ready = rig.condition("Ready")
    assert ready[:2] == ("False", "RenderFailed")
    assert NO_FUNCTION["image"] in ready[2]
    assert rig.condition("Stalled") == VALID
    target = rig.variant()["status"]["downstreamTargets"][0]
    assert target["name"] == FIRST
    assert NO_FUNCTION["image"] in target["renderStatus"]["error"]
    refused(rig.porch.propose(FIRST), 422, "Invalid", GATE)

    again = await rig.reconcile()
    assert again.wants_retry
    assert again.accepted == [], "a retry that fails the same way changes nothing"
    assert rig.revisions_of("bar") == {"packagevariant-1": "Draft"}

    rig.change_variant(pipeline=LABELS)
    assert await rig.settle() == CLONED_AND_MUTATED[1:]
    assert rig.condition("Ready") == READY
    await rig.quiet()


@golden("G-F04")
async def test_a_changed_pipeline_closes_the_draft_changes_and_opens_it(rig: Rig) -> None:
    with_blueprint(rig)
    rig.add_variant(variant())
    await rig.settle()
    rig.save(FIRST, note_txt="mine\n")

    rig.change_variant(pipeline=LABELS)

    expected = ["PUT PR bar.packagevariant-1 False", "PUT PRR bar.packagevariant-1", "PUT PR bar.packagevariant-1 True"]
    assert await rig.settle() == expected
    assert rig.revisions_of("bar") == {"packagevariant-1": "Draft"}
    files = rig.pushed("bar", "packagevariant-1")
    assert files["note.txt"] == "mine\n"
    assert "app: foo" in files["settings.yaml"]
    await rig.quiet()

    rig.change_variant(pipeline=None)
    assert await rig.settle() == expected
    assert "pipeline" not in yaml.safe_load(rig.files(FIRST)["Kptfile"])
    await rig.quiet()


@golden("G-F05", "C-40")
async def test_a_new_upstream_revision_makes_an_upgrade_of_the_published_package(rig: Rig) -> None:
    await published(rig, labels={"team": "a"}, annotations={"note": "b"})
    rig.new_upstream(2)
    rig.change_variant(upstream=upstream(revision=2), labels={"team": "z"})

    assert await rig.settle() == ["POST PR bar.packagevariant-2 False", "PUT PR bar.packagevariant-2 True"]

    draft = rig.revision(SECOND)
    block = draft["spec"]["tasks"][0]["upgrade"]
    assert {key: block[key]["name"] for key in block if key != "strategy"} == {
        "oldUpstreamRef": "blueprints.foo.v1",
        "newUpstreamRef": "blueprints.foo.v2",
        "localPackageRevisionRef": FIRST,
    }
    assert block["strategy"] == "resource-merge"
    assert draft["metadata"]["labels"]["team"] == "z"
    assert draft["metadata"]["annotations"]["note"] == "b"
    assert owners_of(draft) == owners_of(rig.revision(FIRST))
    assert rig.revision(FIRST)["metadata"]["labels"]["team"] == "a", "what exists keeps its labels"
    assert "size-2" in rig.pushed("bar", "packagevariant-2")["settings.yaml"]
    assert rig.targets() == [SECOND]
    await rig.quiet()
    rig.approve(SECOND)
    assert await rig.settle() == []
    assert rig.targets() == [SECOND]


@golden("G-F06", "I5")
async def test_a_changed_pipeline_makes_an_edit_of_the_published_package(rig: Rig) -> None:
    await published(rig)
    before = rig.files(FIRST)
    rig.change_variant(pipeline=LABELS, labels={"team": "z"})

    assert await rig.settle() == [
        "POST PR bar.packagevariant-2 False",
        "PUT PRR bar.packagevariant-2",
        "PUT PR bar.packagevariant-2 True",
    ]

    draft = rig.revision(SECOND)
    assert draft["spec"]["tasks"] == [{"type": "edit", "edit": {"sourceRef": {"name": FIRST}}}]
    assert draft["metadata"]["labels"]["team"] == "z"
    assert draft["spec"]["lifecycle"] == "Draft"
    assert rig.files(FIRST) == before
    assert rig.targets() == [SECOND]
    await rig.quiet()


@golden("G-F07", "C-08", "I7")
async def test_a_draft_follows_its_upstream_in_place_and_keeps_what_was_edited(rig: Rig) -> None:
    with_blueprint(rig)
    rig.add_variant(variant())
    await rig.settle()
    rig.save(FIRST, note_txt="mine\n", settings_yaml=CONFIG_MAP.replace("red", "blue"))
    rig.new_upstream(2)
    rig.change_variant(upstream=upstream(revision=2))

    written = await rig.settle()

    assert written[-1] == "PUT PR bar.packagevariant-1 True"
    assert set(written[:-1]) == {"PUT PR bar.packagevariant-1 False"}
    assert rig.revisions_of("bar") == {"packagevariant-1": "Draft"}
    files = rig.pushed("bar", "packagevariant-1")
    assert files["note.txt"] == "mine\n"
    assert yaml.safe_load(files["settings.yaml"])["data"] == {"size": "size-2", "colour": "blue"}
    lock = rig.revision(FIRST)["status"]["upstreamLock"]["git"]
    assert lock["commit"] == rig.revision("blueprints.foo.v2")["status"]["selfLock"]["git"]["commit"]
    await rig.quiet()


@pytest.mark.parametrize("approved", [False, True], ids=["in place", "new draft"])
async def test_what_both_sides_changed_is_the_first_thing_that_is_told_of_an_upgrade(rig: Rig, approved: bool) -> None:
    with_blueprint(rig)
    rig.add_variant(variant())
    await rig.settle()
    rig.save(FIRST, settings_yaml=CONFIG_MAP.replace("small", "mine"))
    if approved:
        rig.approve(FIRST)
    await rig.settle()
    rig.new_upstream(2)
    rig.change_variant(upstream=upstream(revision=2))
    await rig.settle()

    told = rig.variant()["status"]["pendingChange"]["resources"]
    assert [each["change"] for each in told][:1] == ["conflict"]
    assert "settings.yaml" in told[0]["detail"]
    noted = rig.revision(SECOND if approved else FIRST)["metadata"]["annotations"][CHANGE_SUMMARY]
    assert '"change":"conflict"' in noted
    await rig.quiet()


@golden("G-F07", "G-F04")
async def test_an_upgrade_in_place_and_a_changed_pipeline_are_one_gate_cycle(rig: Rig) -> None:
    with_blueprint(rig)
    rig.add_variant(variant(pipeline=NAMESPACE))
    await rig.settle()
    rig.new_upstream(2)
    rig.change_variant(upstream=upstream(revision=2), pipeline=LABELS)

    written = await rig.settle()

    assert written.count("PUT PR bar.packagevariant-1 True") == 1
    assert written[-2:] == ["PUT PRR bar.packagevariant-1", "PUT PR bar.packagevariant-1 True"]
    files = rig.files(FIRST)
    assert "size-2" in files["settings.yaml"]
    assert "app: foo" in files["settings.yaml"]
    assert "my-ns" not in files["Kptfile"]
    await rig.quiet()


@golden("G-F08", "C-09")
@pytest.mark.parametrize("change", ["pipeline", "upstream"])
async def test_a_proposed_package_is_left_alone_until_it_is_a_draft_again(rig: Rig, change: str) -> None:
    with_blueprint(rig)
    rig.add_variant(variant())
    await rig.settle()
    accepted(rig.porch.propose(FIRST))
    rig.new_upstream(2)
    rig.change_variant(**({"pipeline": LABELS} if change == "pipeline" else {"upstream": upstream(revision=2)}))

    assert await rig.settle() == []

    assert rig.condition("Ready")[:2] == ("False", "DownstreamProposed")
    assert FIRST in rig.condition("Ready")[2]
    assert rig.condition("Stalled") == VALID
    assert rig.targets() == [FIRST]
    await rig.quiet()

    accepted(rig.porch.set_lifecycle(FIRST, "Draft", "approval"))
    assert "PUT PR bar.packagevariant-1 True" in await rig.settle()
    assert rig.condition("Ready") == READY
    await rig.quiet()


@golden("G-F11", "C-40")
async def test_labels_alone_change_no_package(rig: Rig) -> None:
    with_blueprint(rig)
    rig.add_variant(variant(labels={"team": "a"}))
    await rig.settle()
    rig.change_variant(labels={"team": "b"}, annotations={"new": "one"})

    assert await rig.settle() == []

    assert rig.revision(FIRST)["metadata"]["labels"]["team"] == "a"
    assert rig.variant()["status"]["observedGeneration"] == 2
    await rig.quiet()


@golden("G-F17", "C-30")
@pytest.mark.parametrize(
    ("files", "words"),
    [
        (
            {
                "point_yaml": CONFIG_MAP.replace(
                    "  name: settings", "  name: p\n  annotations: {kpt.dev/config-injection: maybe}"
                )
            },
            'point.yaml: ConfigMap/p has invalid "kpt.dev/config-injection" annotation value of "maybe"',
        ),
        (
            {
                f"{number}_yaml": CONFIG_MAP.replace(
                    "  name: settings", "  name: p\n  annotations: {kpt.dev/config-injection: optional}"
                )
                for number in "ab"
            },
            'duplicate injection conditionType "config.injection.ConfigMap.p" (a.yaml and b.yaml)',
        ),
    ],
    ids=["invalid annotation", "ambiguous points"],
)
async def test_an_upstream_that_cannot_be_mutated_makes_no_draft(rig: Rig, files: dict[str, str], words: str) -> None:
    with_blueprint(rig, blueprint(**files))
    rig.add_variant(variant())

    assert await rig.settle() == []

    ready = rig.condition("Ready")
    assert ready[:2] == ("False", "MutationFailed")
    assert words in ready[2]
    assert rig.revisions_of("bar") == {}
    assert rig.condition("Stalled") == VALID


@golden("G-C09", "C-29")
async def test_a_context_that_is_not_there_leaves_a_closed_draft(rig: Rig) -> None:
    """The server makes the file only in deployment repositories, so this shows after the clone."""
    with_blueprint(rig, deployment=False)
    rig.add_variant(variant(packageContext={"data": {"a": "b"}}))

    await rig.reconcile()

    ready = rig.condition("Ready")
    assert ready[:2] == ("False", "MutationFailed")
    assert '"package-context.yaml" not found in PackageRevisionResources' in ready[2]
    assert condition_of(rig.revision(FIRST), GATE)["status"] == "False"
    rig.change_variant(packageContext=None)
    assert await rig.settle() == ["PUT PR bar.packagevariant-1 True"]
    await rig.quiet()


@golden("G-F18", "C-18")
async def test_an_upstream_that_is_missing_stalls_the_variant_until_it_appears(rig: Rig) -> None:
    with_blueprint(rig)
    rig.add_variant(variant(upstream=upstream(revision=2)))

    assert await rig.settle() == []

    stalled = rig.condition("Stalled")
    assert stalled[:2] == ("True", "UpstreamNotFound")
    assert stalled[2].startswith("could not find upstream package revision")
    assert rig.condition("Ready") == ("False", "Error", "invalid packagevariant object")

    rig.new_upstream(2)
    assert await rig.settle() == CLONED
    assert (rig.condition("Ready"), rig.condition("Stalled")) == (READY, VALID)
    await rig.quiet()


@golden("C-45")
async def test_an_upstream_that_is_a_draft_stalls_the_variant(rig: Rig) -> None:
    with_blueprint(rig)
    rig.draft_of("blueprints.foo.v1", "next")
    rig.add_variant(variant(upstream=upstream(workspaceName="next")))

    assert await rig.settle() == []

    assert rig.condition("Stalled") == (
        "True",
        "UpstreamNotPublished",
        'upstream package revision "blueprints.foo.next" is not published',
    )


@golden("G-V04")
async def test_an_invalid_variant_is_told_everything_and_writes_nothing(rig: Rig) -> None:
    with_blueprint(rig)
    rig.add_variant(variant(adoptionPolicy="invalid", deletionPolicy="invalid"))

    assert await rig.settle() == []

    assert rig.condition("Stalled") == (
        "True",
        "ValidationError",
        (
            'spec.adoptionPolicy field can only be "adoptNone" or "adoptExisting"; '
            'spec.deletionPolicy can only be "orphan" or "delete"'
        ),
    )
    assert rig.condition("Ready") == ("False", "Error", "invalid packagevariant object")
    await rig.quiet()


@golden("C-10", "G-U03")
async def test_a_branch_is_cloned_by_its_commit_and_followed_only_where_the_package_changes(rig: Rig) -> None:
    with_blueprint(rig)
    rig.push("blueprints", {"only": blueprint("only")})
    rig.sync("blueprints")
    rig.add_variant(variant(upstream=upstream("only", workspaceName="main")))

    assert await rig.settle() == CLONED

    at = rig.revision("blueprints.only.main")["status"]["selfLock"]["git"]
    source = rig.revision(FIRST)["spec"]["tasks"][0]["clone"]["upstreamRef"]
    assert source["git"]["ref"] == at["commit"]
    await rig.quiet()

    rig.push("blueprints", {"other": blueprint("other")})
    rig.sync("blueprints")
    assert await rig.settle() == [], "another package of the branch changed"
    rig.push("blueprints", {"only": blueprint("only", settings_yaml=CONFIG_MAP.replace("small", "head"))})
    rig.sync("blueprints")
    assert "PUT PR bar.packagevariant-1 True" in await rig.settle()
    assert "head" in rig.files(FIRST)["settings.yaml"]
    await rig.quiet()


@golden("C-10")
async def test_a_published_package_of_a_branch_is_upgraded_to_the_next_commit(rig: Rig) -> None:
    with_blueprint(rig)
    rig.push("blueprints", {"only": blueprint("only")})
    rig.sync("blueprints")
    rig.add_variant(variant(upstream=upstream("only", revision=-1)))
    await rig.settle()
    rig.approve(FIRST)
    rig.push("blueprints", {"only": blueprint("only", settings_yaml=CONFIG_MAP.replace("small", "head"))})
    rig.sync("blueprints")

    assert await rig.settle() == ["POST PR bar.packagevariant-2 False", "PUT PR bar.packagevariant-2 True"]

    assert "head" in rig.files(SECOND)["settings.yaml"]
    await rig.quiet()


@golden("G-L06")
async def test_a_variant_that_is_pointed_at_another_package_is_upgraded_to_it(rig: Rig) -> None:
    await published(rig)
    rig.push("blueprints", {"baz@v1": blueprint("baz", settings_yaml=CONFIG_MAP.replace("small", "other"))})
    rig.sync("blueprints")
    rig.change_variant(upstream=upstream("baz", revision=1))

    assert await rig.settle() == ["POST PR bar.packagevariant-2 False", "PUT PR bar.packagevariant-2 True"]

    assert "other" in rig.files(SECOND)["settings.yaml"]
    assert rig.revision(SECOND)["status"]["upstreamLock"]["git"]["directory"].strip("/") == "baz"
    await rig.quiet()


@golden("R5")
async def test_an_upgrade_goes_on_when_the_old_upstream_was_deleted(rig: Rig) -> None:
    await published(rig)
    rig.new_upstream(2)
    rig.edit("blueprints.foo.v1", lambda body: body["spec"].update(lifecycle="DeletionProposed"))
    gone = rig.porch.delete_revision("blueprints.foo.v1")
    rig.change_variant(upstream=upstream(revision=2))

    written = await rig.settle()

    assert written == ["POST PR bar.packagevariant-2 False", "PUT PR bar.packagevariant-2 True"], gone
    assert "size-2" in rig.files(SECOND)["settings.yaml"]
    await rig.quiet()


@golden("C-11")
async def test_an_older_owned_revision_is_no_base_for_a_new_draft(rig: Rig) -> None:
    await published(rig)
    by_hand = rig.draft_of(FIRST, "by-hand")
    rig.approve_open(by_hand)
    assert await rig.settle() == []
    rig.change_variant(pipeline=LABELS)

    assert await rig.settle() == []

    assert rig.condition("Ready")[:2] == ("False", "DownstreamDiverged")
    assert "adoptExisting" in rig.condition("Ready")[2]
    assert "packagevariant-2" not in rig.revisions_of("bar")
    await rig.quiet()


@golden("2.1.4", "6.7")
async def test_a_paused_variant_writes_nothing_but_status(rig: Rig) -> None:
    with_blueprint(rig)
    rig.add_variant(variant())
    await rig.settle()
    rig.patch_variant({"metadata": {"annotations": {"config.porch.kpt.dev/paused": "true"}}})
    rig.change_variant(pipeline=LABELS)

    assert await rig.settle() == []

    assert rig.condition("Paused")[:2] == ("True", "PausedByUser")
    await rig.quiet()
    rig.patch_variant({"metadata": {"annotations": {"config.porch.kpt.dev/paused": None}}})
    assert "PUT PRR bar.packagevariant-1" in await rig.settle()
    assert rig.condition("Paused")[0] != "True"
    await rig.quiet()


@golden("2.10.1")
async def test_mutations_that_are_there_already_write_no_file(rig: Rig) -> None:
    """The upstream package has the very function that the variant asks for: its Kptfile is not written again."""
    name = "PackageVariant.my-pv.label.0"
    pipeline = (
        f"pipeline:\n  mutators:\n  - name: {name}\n    image: {SET_LABELS['image']}\n    configMap: {{app: foo}}\n"
    )
    with_blueprint(rig, {**blueprint(), "Kptfile": kptfile("foo", pipeline)})
    rig.add_variant(variant(pipeline={"mutators": [{**SET_LABELS, "name": "label"}]}))

    assert await rig.settle() == CLONED

    assert f"- name: {name}" in rig.files(FIRST)["Kptfile"]
    await rig.quiet()
