"""What is counted, under which names and labels."""

from apiserver.machinery.in_flight import PoolFigures
from apiserver.machinery.metrics import Metrics, ResourceFigures, unserved
from apiserver.machinery.request import RequestInfo, request_info

Scope = dict[str, object]


def scope(query: bytes = b"", content_type: bytes = b"application/json") -> Scope:
    return {"type": "http", "query_string": query, "headers": [(b"content-type", content_type)]}


def info(method: str, path: str) -> RequestInfo:
    return request_info(method, path, {})


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def target(verb: str, resource: str, where: str, *, group: str = "", version: str = "v1") -> dict[str, str]:
    return {
        "verb": verb,
        "group": group,
        "version": version,
        "resource": resource,
        "subresource": "",
        "scope": where,
        "component": "apiserver",
    }


def test_requests_are_counted_by_target_and_code() -> None:
    metrics = Metrics()
    for _ in range(2):
        metrics.record(info("GET", "/api/v1/namespaces/a/configmaps/b"), scope(), code=200, seconds=0.01, size=700)
    metrics.record(info("POST", "/api/v1/namespaces/a/configmaps"), scope(b"dryRun=All"), code=201, seconds=1, size=9)

    get = target("GET", "configmaps", "resource")
    assert value(metrics, "apiserver_request_total", **get, code="200", dry_run="") == 2
    assert value(metrics, "apiserver_request_duration_seconds_count", **get, dry_run="") == 2
    assert value(metrics, "apiserver_response_sizes_sum", **get) == 1400
    post = target("POST", "configmaps", "resource")
    assert value(metrics, "apiserver_request_total", **post, code="201", dry_run="All") == 1


def test_verbs_and_scopes_are_those_of_kubernetes() -> None:
    metrics = Metrics()
    metrics.record(info("GET", "/api/v1/configmaps"), scope(), code=200, seconds=0, size=0)
    metrics.record(info("DELETE", "/api/v1/namespaces/a/configmaps"), scope(), code=200, seconds=0, size=0)
    apply = scope(content_type=b"application/apply-patch+yaml")
    metrics.record(info("PATCH", "/api/v1/namespaces/a/configmaps/b"), apply, code=200, seconds=0, size=0)
    metrics.record(
        RequestInfo("brew", "/api/v1/configmaps", resource="configmaps"), scope(), code=405, seconds=0, size=0
    )

    counted = {
        (sample.labels["verb"], sample.labels["scope"])
        for family in metrics.requests.collect()
        for sample in family.samples
    }
    assert counted == {
        ("LIST", "cluster"),
        ("DELETECOLLECTION", "namespace"),
        ("APPLY", "resource"),
        ("other", "cluster"),
    }


def test_what_a_client_makes_up_is_no_label() -> None:
    metrics = Metrics()
    made_up = info("GET", "/apis/evil.example/v7/namespaces/a/things/b")
    metrics.record(unserved(made_up), scope(), code=404, seconds=0, size=19)
    metrics.record(info("GET", "/etc/passwd"), scope(), code=404, seconds=0, size=19)
    metrics.record(info("GET", "/readyz/etcd"), scope(), code=404, seconds=0, size=19)

    labels = [sample.labels for family in metrics.requests.collect() for sample in family.samples]
    assert [(one["resource"], one["group"], one["subresource"]) for one in labels] == [
        ("other", "other", ""),
        ("", "", ""),
        ("", "", "/readyz"),
    ]


def test_sources_are_read_when_somebody_looks() -> None:
    metrics = Metrics()
    ways: dict[str, int] = {}
    metrics.read_in_flight(lambda: [PoolFigures("readOnly", 3, 2, 1)])
    metrics.read_resources(lambda: [ResourceFigures("repositories.config.porch.kpt.dev", 5, 6, 7)])
    metrics.read_edits(lambda: ways)
    ways["spliced"] = 4
    metrics.unread["config.porch.kpt.dev", "repositories"] = 2

    kind = {"request_kind": "readOnly"}
    resource = {"group": "config.porch.kpt.dev", "resource": "repositories"}
    assert value(metrics, "apiserver_current_inflight_requests", **kind) == 3
    assert value(metrics, "apiserver_current_inqueue_requests", **kind) == 2
    assert value(metrics, "porch_requests_refused_total", **kind) == 1
    assert value(metrics, "apiserver_storage_objects", resource="repositories.config.porch.kpt.dev") == 5
    assert value(metrics, "apiserver_watch_cache_events_received_total", **resource) == 6
    assert value(metrics, "apiserver_terminated_watchers_total", **resource) == 7 + 2
    assert value(metrics, "porch_yaml_edits_total", way="spliced") == 4
    assert (value(metrics, "process_resident_memory_bytes") or 0) > 1e6
