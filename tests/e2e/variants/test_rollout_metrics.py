"""What the controllers tell at /metrics of a rollout that waits at a gate, and goes on. Source: ``variants.md`` 6.2 and 6.9."""

import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from controllers_process import controllers_process
from drafts import accepted
from eventually import eventually
from git_server import GitServer
from porch_client import CONFIG
from porch_process import PorchProcess, free_port
from prometheus_client.parser import text_string_to_metric_families
from set_place import SETS, package_set
from variant_place import UPSTREAM, Place, blueprint, new_place, upstream

pytestmark = pytest.mark.timeout(400)  # the first test starts a server and a Git host

SITES = {"site-a": "canary", "site-b": "prod", "site-c": "prod"}
NOTHING = {
    **{f"porch_rollouts {phase}": 0.0 for phase in ("Progressing", "Waiting", "Paused", "Complete")},
    **{f"porch_rollout_waves {state}": 0.0 for state in ("waiting", "changing", "done")},
    **{f"porch_rollout_variants {state}": 0.0 for state in ("outdated", "inFlight", "settled", "failed")},
}


@pytest.fixture
def place(porch_server: PorchProcess, git_http: GitServer, namespace: str) -> Iterator[Place]:
    """A blueprint and three sites, of which the first is a canary."""
    made = new_place(porch_server, git_http, namespace)
    with closing(made.porch):
        made.register(UPSTREAM, {"foo@v1": blueprint()})
        for site, tier in SITES.items():
            made.register(site, deployment=True)
            made.patch(CONFIG, "repositories", site, {"metadata": {"labels": {"site": "yes", "tier": tier}}})
        yield made


def shows(port: int, **expected: float) -> None:
    """See that the rollouts' metrics are these and otherwise 0."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
            families = [*text_string_to_metric_families(answer.read().decode())]
    except OSError as error:
        raise AssertionError(f"the process does not listen yet: {error}") from error
    samples = [sample for family in families for sample in family.samples if sample.name.startswith("porch_rollout")]
    found = {f"{sample.name} {''.join(sample.labels.values())}": sample.value for sample in samples}

    assert found == NOTHING | {name.replace("__", " "): value for name, value in expected.items()}


def test_a_rollout_at_its_gate_is_told_by_phase_wave_and_variant(place: Place, tmp_path: Path) -> None:
    canary = {"name": "canary", "match": "repository.labels['tier'] == 'canary'", "gate": {"manual": True}}
    rollout = {"strategy": "Waves", "maxInFlight": 3, "waves": [canary, {"name": "rest"}]}
    target = {"repositorySelector": {"matchLabels": {"site": "yes"}}}
    port = free_port()
    environment = {"PORCH_CONTROLLERS_PORT": str(port)}
    with controllers_process(place.server.kubeconfig, place.namespace, tmp_path / "log", environment):
        place.create(
            SETS, "packagevariantsets", package_set("fleet", target, upstream=upstream(revision=1), rollout=rollout)
        )
        eventually(
            lambda: shows(
                port,
                porch_rollouts__Waiting=1,
                porch_rollout_waves__done=1,
                porch_rollout_waves__waiting=1,
                porch_rollout_variants__settled=1,
                porch_rollout_variants__outdated=2,
            )
        )

        fleet = accepted(place.porch.request("GET", place.path(SETS, "packagevariantsets", "fleet")))
        approved = {"config.porch.kpt.dev/approve-wave": f"canary@{fleet['status']['rollout']['changeId']}"}
        place.patch(SETS, "packagevariantsets", "fleet", {"metadata": {"annotations": approved}})
        eventually(
            lambda: shows(
                port, porch_rollouts__Complete=1, porch_rollout_waves__done=2, porch_rollout_variants__settled=3
            )
        )
        place.patch(SETS, "packagevariantsets", "fleet", {"spec": {"rollout": None}})
        eventually(lambda: shows(port))
