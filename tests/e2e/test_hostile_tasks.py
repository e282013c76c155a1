"""Creating tasks that no client of ours sends: each is refused with what is wrong, and nothing comes of it."""

from typing import Any

import pytest
from drafts import CONFIG_MAP, accepted, draft, published
from manifests import Register
from porch_client import PorchClient
from remotes import Remote, refs

LONG = "x" * 100_000
GIT = {"repo": "https://git.invalid/x.git", "directory": "a", "ref": "main"}
TASKS: list[Any] = [
    None,
    {},
    {"type": None},
    {"type": "type"},
    {"type": LONG},
    {"type": "render"},
    {"type": "push"},
    {"type": "clone"},
    {"type": "clone", "clone": None},
    {"type": "clone", "clone": {"upstreamRef": None}},
    {"type": "clone", "clone": {"upstreamRef": {"upstreamRef": {}}}},
    {"type": "clone", "clone": {"upstreamRef": {"upstreamRef": {"name": LONG}}}},
    {"type": "clone", "clone": {"upstreamRef": {"git": {"repo": LONG, "directory": "a"}}}},
    {"type": "clone", "clone": {"upstreamRef": {"git": {"repo": "file:///etc", "directory": "a"}}}},
    {"type": "clone", "clone": {"upstreamRef": {"git": {**GIT, "secretRef": {"name": "../../x"}}}}},
    {"type": "clone", "clone": {"upstreamRef": {"git": {"repo": None, "directory": None, "ref": None}}}},
    {"type": "clone", "clone": {"upstreamRef": {"oci": {"image": "x"}}}},
    {"type": "edit"},
    {"type": "edit", "edit": {"sourceRef": None}},
    {"type": "edit", "edit": {"sourceRef": {"name": "../../../x"}}},
    {"type": "upgrade"},
    {"type": "upgrade", "upgrade": {"oldUpstreamRef": None, "newUpstreamRef": {}, "localPackageRevisionRef": None}},
    {"type": "upgrade", "upgrade": {"oldUpstreamRef": {"name": "a", "git": GIT}}},
    {"type": "upgrade", "upgrade": {"strategy": LONG}},
    {"type": "init", "init": {"subpackage": "../../x"}},
    {"type": "init", "init": {"subpackage": LONG}},
]


@pytest.fixture
def site(register: Register, empty_remote: Remote) -> Remote:
    """The remote of a repository named site."""
    register(site=empty_remote)
    return empty_remote


def test_a_task_that_cannot_be_is_refused_and_leaves_nothing(porch: PorchClient, site: Remote) -> None:
    before = refs(site.path)

    for task in TASKS:
        answer = porch.create_revision("site", "hostile", tasks=[task])

        assert answer.code in {400, 422}, (str(task)[:100], answer.body[:500])
        assert len(answer.body) < 5000, str(task)[:100]
        assert porch.revision("site.hostile.v1").code == 404

    assert refs(site.path) == before


def test_odd_tasks_in_an_update_change_nothing(porch: PorchClient, site: Remote) -> None:
    made = draft(porch, "site", site, "odd")
    before = accepted(porch.revision(made.name))

    for task in TASKS:
        wanted = {**before, "spec": {**before["spec"], "tasks": [*before["spec"]["tasks"], task]}}
        answer = porch.request("PUT", porch.path("packagerevisions", made.name), wanted)

        assert answer.code in {200, 400, 422}, (str(task)[:100], answer.body[:500])
        assert accepted(porch.revision(made.name)) == before, str(task)[:100]


def test_conflicts_of_an_upgrade_are_warnings_of_its_answer(porch: PorchClient, site: Remote) -> None:
    first = published(porch, "site", site, "blue")
    clone = {"type": "clone", "clone": {"upstreamRef": {"upstreamRef": {"name": first.name}}}}
    accepted(porch.create_revision("site", "app", tasks=[clone]))
    edit = {"type": "edit", "edit": {"sourceRef": {"name": first.name}}}
    accepted(porch.create_revision("site", "blue", "v2", tasks=[edit]))
    for name, value in (("site.app.v1", "mine"), ("site.blue.v2", "theirs")):
        accepted(porch.save(name, {"settings.yaml": CONFIG_MAP.replace("value", value)}))
        accepted(porch.propose(name))
        accepted(porch.approve(name))
    block = {
        "oldUpstreamRef": {"name": first.name},
        "newUpstreamRef": {"name": "site.blue.v2"},
        "localPackageRevisionRef": {"name": "site.app.v1"},
    }

    answer = porch.create_revision("site", "app", "v2", tasks=[{"type": "upgrade", "upgrade": block}])

    accepted(answer)
    warned = answer.headers["warning"]
    assert warned.startswith('299 - "settings.yaml: |ConfigMap||settings: data.key: changed upstream and locally')
    assert "theirs" not in warned
