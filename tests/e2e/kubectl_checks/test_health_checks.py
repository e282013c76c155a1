"""Health and metrics as kubectl reads them: rows 6, 7 and 11 of ``kube-api.md`` 7.2."""

from kubectl import Kubectl


def test_row_06_readyz_verbose_ends_with_passed(server_kubectl: Kubectl) -> None:
    lines = server_kubectl.ok("get", "--raw", "/readyz?verbose").splitlines()

    assert lines[-1] == "readyz check passed"
    assert {"[+]ping ok", "[+]log ok", "[+]database ok", "[+]watch-cache ok", "[+]shutdown ok"} <= set(lines)


def test_row_07_livez_leaves_out_what_is_excluded(server_kubectl: Kubectl) -> None:
    assert server_kubectl.ok("get", "--raw", "/livez?exclude=ping") == "ok"
    lines = server_kubectl.ok("get", "--raw", "/livez?exclude=ping&verbose").splitlines()

    assert lines[0] == "[+]ping excluded: ok"
    assert lines[-1] == "livez check passed"
    assert "[+]database ok" not in lines, "a restart does not help a database"


def test_row_11_metrics_count_requests(server_kubectl: Kubectl) -> None:
    server_kubectl.ok("get", "packagerevisions")

    lines = server_kubectl.ok("get", "--raw", "/metrics").splitlines()

    counted = [line for line in lines if line.startswith("apiserver_request_total{")]
    assert any(
        'resource="packagerevisions"' in line and 'verb="LIST"' in line and 'code="200"' in line for line in counted
    )
