"""When repositories are read: by schedule, once, on request, after a Secret changed; and what their status says of it."""

import datetime as dt
import shutil
import time
from collections.abc import Callable

import pytest
from drafts import accepted
from eventually import eventually
from git_server import GitServer
from kubectl import Kubectl
from manifests import Object, credentials, repository
from porch_client import CONFIG, PorchClient
from remotes import Remote, commit_files, refs

KPTFILE = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: theirs\n"
NEVER = "0 0 1 1 *"
"""A schedule that comes due on new year's day only."""


@pytest.fixture
def scheduled(kubectl: Kubectl, empty_remote: Remote) -> Callable[[str], None]:
    """Register a remote as the repository ``repo`` with a schedule, and wait until it is ready."""

    def register(schedule: str) -> None:
        body = repository("repo", empty_remote.url)
        body["spec"]["sync"] = {"schedule": schedule}
        kubectl.apply(credentials(), body)
        kubectl.ok("wait", "--for=condition=Ready", "repository/repo", "--timeout=60s")

    return register


def get(kubectl: Kubectl) -> Object:
    found: Object = kubectl.json("get", "repository", "repo")
    return found


def moment(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)


def packages(kubectl: Kubectl) -> set[str]:
    return set(kubectl.ok("get", "packagerevisions.v1alpha1.porch.kpt.dev", "-o", "name").split())


def push_theirs(remote: Remote) -> None:
    commit_files(remote.path, {"theirs/Kptfile": KPTFILE}, "Theirs", tag="theirs/v1")


def shows_theirs(kubectl: Kubectl) -> None:
    assert "packagerevision.porch.kpt.dev/repo.theirs.v1" in packages(kubectl)


def test_the_status_says_when_the_repository_was_and_will_be_read(
    kubectl: Kubectl, scheduled: Callable[[str], None], empty_remote: Remote
) -> None:
    scheduled("TZ=Asia/Tokyo 0 9 * * *")

    found = get(kubectl)
    status = found["status"]

    assert status["observedGeneration"] == found["metadata"]["generation"]
    assert status["gitCommitHash"] == refs(empty_remote.path)["refs/heads/main"]
    assert status["packageCount"] == 0
    assert abs(dt.datetime.now(dt.UTC) - moment(status["lastFullSyncTime"])) < dt.timedelta(seconds=60)
    due = moment(status["nextFullSyncTime"])
    assert (due.hour, due.minute) == (0, 0)
    assert dt.timedelta(0) < due - moment(status["lastFullSyncTime"]) <= dt.timedelta(days=1)


def test_a_schedule_says_when_the_changes_of_others_are_read(
    kubectl: Kubectl, scheduled: Callable[[str], None], empty_remote: Remote
) -> None:
    scheduled(NEVER)
    push_theirs(empty_remote)
    time.sleep(3)
    assert packages(kubectl) == set()

    kubectl.ok("patch", "repository", "repo", "--type=merge", "-p", '{"spec":{"sync":{"schedule":"@every 1s"}}}')

    eventually(lambda: shows_theirs(kubectl))
    first = get(kubectl)["status"]["lastFullSyncTime"]

    def goes_on() -> None:
        assert get(kubectl)["status"]["lastFullSyncTime"] > first

    eventually(goes_on)


def test_an_annotation_asks_for_a_sync_and_is_gone_when_it_is_done(
    kubectl: Kubectl, scheduled: Callable[[str], None], empty_remote: Remote
) -> None:
    scheduled(NEVER)
    push_theirs(empty_remote)

    for _ in range(2):  # the same value works again
        before = get(kubectl)
        time.sleep(1.1)
        kubectl.ok("annotate", "repository", "repo", "porch.kpt.dev/sync=now")

        def done(before: Object = before) -> None:
            found = get(kubectl)
            assert "porch.kpt.dev/sync" not in (found["metadata"].get("annotations") or {})
            assert found["status"]["lastFullSyncTime"] > before["status"]["lastFullSyncTime"]
            assert found["metadata"]["generation"] == before["metadata"]["generation"]

        eventually(done)
    shows_theirs(kubectl)


@pytest.mark.parametrize("seconds", [-3600, 2])
def test_a_sync_at_a_time_is_done_then_or_at_once_when_it_has_passed(
    seconds: int, kubectl: Kubectl, scheduled: Callable[[str], None], empty_remote: Remote
) -> None:
    scheduled(NEVER)
    push_theirs(empty_remote)
    at = (dt.datetime.now(dt.UTC) + dt.timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")

    kubectl.ok("patch", "repository", "repo", "--type=merge", "-p", f'{{"spec":{{"sync":{{"runOnceAt":"{at}"}}}}}}')

    def done() -> None:
        found = get(kubectl)
        assert found["status"].get("observedRunOnceAt") == at
        assert found["spec"]["sync"] == {"schedule": NEVER}
        assert found["status"]["observedGeneration"] == found["metadata"]["generation"]

    eventually(done)
    shows_theirs(kubectl)
    assert get(kubectl)["status"]["lastFullSyncTime"] >= at


def test_what_a_request_asked_for_is_done_once(kubectl: Kubectl, scheduled: Callable[[str], None]) -> None:
    """A manifest that is applied again and again with the same time does not sync again and again."""
    scheduled(NEVER)
    patch = '{"spec":{"sync":{"runOnceAt":"2026-01-01T00:00:00Z"}}}'
    kubectl.ok("patch", "repository", "repo", "--type=merge", "-p", patch)
    eventually(lambda: _observed(kubectl))
    before = get(kubectl)["status"]["lastFullSyncTime"]
    time.sleep(1.1)

    kubectl.ok("patch", "repository", "repo", "--type=merge", "-p", patch)
    time.sleep(3)

    assert get(kubectl)["status"]["lastFullSyncTime"] == before


def _observed(kubectl: Kubectl) -> None:
    assert get(kubectl)["status"].get("observedRunOnceAt") == "2026-01-01T00:00:00Z"


def test_a_look_that_finds_nothing_writes_nothing(kubectl: Kubectl, porch: PorchClient, empty_remote: Remote) -> None:
    kubectl.apply(credentials(), repository("repo", empty_remote.url))
    kubectl.ok("wait", "--for=condition=Ready", "repository/repo", "--timeout=60s")
    before = get(kubectl)["metadata"]["resourceVersion"]

    time.sleep(5)

    assert get(kubectl)["metadata"]["resourceVersion"] == before


def test_a_missing_remote_shows_with_a_schedule_too_and_recovery_reads_it(
    kubectl: Kubectl, scheduled: Callable[[str], None], empty_remote: Remote
) -> None:
    scheduled(NEVER)
    aside = empty_remote.path.with_suffix(".aside")
    shutil.move(empty_remote.path, aside)
    kubectl.ok("wait", "--for=condition=Ready=False", "repository/repo", "--timeout=60s")
    push_theirs(Remote(aside, ""))

    shutil.move(aside, empty_remote.path)

    kubectl.ok("wait", "--for=condition=Ready", "repository/repo", "--timeout=60s")
    shows_theirs(kubectl)
    events = kubectl.json("get", "events")["items"]
    assert [e["type"] for e in events if e["reason"] == "SyncFailed"] == ["Warning"]


def test_a_new_password_wakes_a_failing_repository_at_once(
    kubectl: Kubectl, porch: PorchClient, git_http: GitServer, empty_remote: Remote
) -> None:
    body = repository("repo", f"{git_http.url}/private/{empty_remote.path.name}")
    (git_http.root / "private").mkdir(exist_ok=True)
    kubectl.apply(body)

    def asks_for_the_secret() -> None:
        (condition,) = get(kubectl).get("status", {}).get("conditions") or [{}]
        assert "secret" in condition.get("message", "")
        assert condition["reason"] == "Error"

    eventually(asks_for_the_secret)
    shutil.copytree(empty_remote.path, git_http.root / "private" / empty_remote.path.name)
    path = f"{CONFIG}/namespaces/{porch.namespace}/repositories/repo"
    started = time.monotonic()  # no kubectl from here: starting it twice can take as long as what is measured

    accepted(porch.request("POST", f"/api/v1/namespaces/{porch.namespace}/secrets", credentials()))

    def ready() -> None:
        (condition,) = porch.request("GET", path).object["status"]["conditions"]
        assert condition["status"] == "True", condition

    eventually(ready)
    assert time.monotonic() - started < 9, "the next attempt by itself would have been ten seconds after the first"


def test_the_transition_time_moves_only_with_the_status(
    kubectl: Kubectl, porch: PorchClient, scheduled: Callable[[str], None]
) -> None:
    scheduled("@every 1s")
    before = get(kubectl)["status"]

    def synced_again() -> Object:
        status: Object = get(kubectl)["status"]
        assert status["lastFullSyncTime"] > before["lastFullSyncTime"]
        return status

    after = eventually(synced_again)

    assert after["conditions"][0]["lastTransitionTime"] == before["conditions"][0]["lastTransitionTime"]


@pytest.mark.parametrize(
    "schedule", ["* * * * * *", "0 0 L * *", "* * * * 7", "@every", "@reboot", "TZ=Moon/Base * * * * *", "0 0 30 2 *"]
)
def test_a_schedule_that_nobody_understands_is_refused(schedule: str, porch: PorchClient, empty_remote: Remote) -> None:
    body = repository("repo", empty_remote.url, login="")
    body["spec"]["sync"] = {"schedule": schedule}

    answer = porch.request("POST", f"{CONFIG}/namespaces/{porch.namespace}/repositories", body)

    assert answer.code == 422
    assert "spec.sync.schedule" in answer.message
