"""What is reported as drift, and how (``variants.md`` 6.4)."""

from typing import Any

import pytest
from cluster_bodies import published, revision

from controllers.packagevariant.drift import report_drift
from controllers.packagevariant.views import Findings
from krm.variants.revisions import Revision

NOW = "2026-02-02T00:00:00Z"
EARLIER = "2026-01-01T00:00:00Z"
V1 = Revision.of(published(number=1))
V2 = Revision.of(published(number=2))
V3 = Revision.of(published(number=3))


def findings(upstream: Revision = V1, others: tuple[Revision, ...] = (), **found: Any) -> Findings:
    return Findings(upstream=upstream, upstream_revisions=(upstream, *others), **found)


def test_nothing_drifted() -> None:
    assert report_drift(findings(V2, (V1,)), {"drift": {"since": EARLIER}}, NOW) == (None, None)


def test_a_source_that_was_left_behind_is_counted() -> None:
    drift, condition = report_drift(findings(V1, (V3, V2)), {}, NOW)

    assert drift == {"since": NOW, "upstreamBehind": 2, "newestUpstream": "blueprints.foo.v3"}
    assert condition == (
        "UpstreamBehind",
        'the source has 2 newer published revisions, the newest is "blueprints.foo.v3"',
    )


@pytest.mark.parametrize(
    "newer",
    [
        pytest.param(published(number=2, lifecycle="DeletionProposed"), id="that is to be deleted"),
        pytest.param(published(number=2, deletionTimestamp=NOW), id="that is being deleted"),
        pytest.param(revision(workspace="v2"), id="that is a draft"),
    ],
)
def test_nobody_is_behind_a_revision(newer: dict[str, Any]) -> None:
    assert report_drift(findings(V1, (Revision.of(newer),)), {}, NOW) == (None, None)


def test_a_source_without_a_number_is_behind_nothing() -> None:
    head = Revision.of(revision(workspace="main", number=-1, lifecycle="Published"))

    assert report_drift(findings(head, (V3,)), {}, NOW) == (None, None)


def test_the_gravest_is_the_reason_and_all_are_told() -> None:
    unmanaged = Revision.of(published("bar", 4, repository="deployments"))
    found = findings(
        V1, (V2,), files=("Kptfile", "a.yaml"), unmanaged=unmanaged, unfulfilled=("config.injection.ConfigMap.x",)
    )
    drift, condition = report_drift(found, {}, NOW)

    assert drift == {
        "since": NOW,
        "upstreamBehind": 1,
        "newestUpstream": "blueprints.foo.v2",
        "files": ["Kptfile", "a.yaml"],
    }
    assert condition == (
        "ContentDrift",
        (
            "changed after the variant's changes were applied: Kptfile, a.yaml; "
            'package revision "deployments.bar.v4" is newer and not owned by this variant; '
            "nothing was injected for config.injection.ConfigMap.x; "
            'the source has one newer published revision, the newest is "blueprints.foo.v2"'
        ),
    )


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        pytest.param({"unmanaged": V3}, "UnmanagedRevision", id="unmanaged"),
        pytest.param({"unfulfilled": ("config.injection.A.b",)}, "InjectionUnfulfilled", id="unfulfilled"),
    ],
)
def test_drift_without_files_and_revisions_still_has_a_beginning(found: dict[str, Any], reason: str) -> None:
    drift, condition = report_drift(findings(**found), {}, NOW)

    assert drift == {"since": NOW}
    assert condition is not None
    assert condition[0] == reason


def test_twenty_files_are_listed_and_five_are_told() -> None:
    paths = tuple(f"{number:02}.yaml" for number in range(30))
    drift, condition = report_drift(findings(files=paths), {}, NOW)

    assert drift == {"since": NOW, "files": list(paths[:20])}
    assert condition is not None
    assert condition[1].endswith("00.yaml, 01.yaml, 02.yaml, 03.yaml, 04.yaml and 25 more")


def test_a_repeated_report_is_the_same_report() -> None:
    first, _ = report_drift(findings(V1, (V2,)), {}, EARLIER)

    assert report_drift(findings(V1, (V2,)), {"drift": first}, NOW)[0] == first
