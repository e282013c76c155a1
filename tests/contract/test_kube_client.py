"""The client of the Kubernetes API, against a real server process, and against one that answers as no server should."""

import asyncio
import json
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from control_plane_keys import Authority
from kube_stand_in import event, kubeconfig, stand_in, start_stream
from porch_process import PorchProcess, free_port

from krm.client import client as client_module
from krm.client import connection
from krm.client import kubeconfig as kubeconfig_module
from krm.client.client import KubeClient, Unanswered, Unreachable, WriteRefused, connect
from krm.client.kubeconfig import BadKubeconfig
from krm.client.resources import CUSTOM_RESOURCE_DEFINITIONS, PACKAGE_REVISIONS, Resource
from krm.meta import errors
from krm.meta.errors import StatusError

Json = dict[str, Any]

MAPS = Resource("", "v1", "configmaps", "ConfigMap")


def config_map(name: str, **data: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


async def hear_and_hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.close()


@pytest.fixture
async def kube(porch_server: PorchProcess) -> AsyncIterator[KubeClient]:
    async with connect(porch_server.kubeconfig) as client:
        yield client


class TestRealServer:
    async def test_objects_are_created_read_replaced_patched_and_deleted(
        self, kube: KubeClient, namespace: str
    ) -> None:
        made = await kube.create(MAPS, namespace, config_map("a", x="1"))
        made["data"]["x"] = "2"
        replaced = await kube.update(MAPS, made)
        patched = await kube.patch(MAPS, namespace, "a", {"data": {"y": "3"}})
        jumps = [{"op": "remove", "path": "/data/x"}]
        jumped = await kube.patch(MAPS, namespace, "a", jumps, content_type="application/json-patch+json")
        read = await kube.get(MAPS, namespace, "a")
        await kube.delete(MAPS, namespace, "a")

        assert replaced["data"] == {"x": "2"}
        assert patched["data"] == {"x": "2", "y": "3"}
        assert jumped == read
        assert read["data"] == {"y": "3"}
        with pytest.raises(errors.NotFound):
            await kube.get(MAPS, namespace, "a")

    async def test_a_name_that_is_taken_and_a_version_that_is_old_are_told_apart(
        self, kube: KubeClient, namespace: str
    ) -> None:
        made = await kube.create(MAPS, namespace, config_map("a"))
        await kube.patch(MAPS, namespace, "a", {"data": {"y": "3"}})

        with pytest.raises(errors.AlreadyExists) as taken:
            await kube.create(MAPS, namespace, config_map("a"))
        with pytest.raises(errors.Conflict) as stale:
            await kube.update(MAPS, made)

        assert taken.value.status["details"]["name"] == "a"
        assert stale.value.status["reason"] == "Conflict"

    async def test_a_deletion_may_name_the_object_by_uid_and_version(self, kube: KubeClient, namespace: str) -> None:
        made = await kube.create(MAPS, namespace, config_map("a"))
        uid, version = made["metadata"]["uid"], made["metadata"]["resourceVersion"]

        with pytest.raises(errors.Conflict):
            await kube.delete(MAPS, namespace, "a", uid="another")
        with pytest.raises(errors.Conflict):
            await kube.delete(MAPS, namespace, "a", uid=uid, resource_version="1")
        await kube.delete(MAPS, namespace, "a", uid=uid, resource_version=version)

    async def test_what_is_wrong_with_an_object_comes_with_its_fields(self, kube: KubeClient, namespace: str) -> None:
        with pytest.raises(errors.Invalid) as wrong:
            await kube.create(MAPS, namespace, config_map("Not A Name"))

        assert wrong.value.causes[0].field == "metadata.name"

    async def test_lists_come_in_pages_of_one_state(self, kube: KubeClient, namespace: str) -> None:
        for number in range(7):
            await kube.create(MAPS, namespace, config_map(f"m{number}"))
        pages = []
        async for page in kube.list(MAPS, namespace, page=3):
            pages.append([one["metadata"]["name"] for one in page.items])
            await kube.create(MAPS, namespace, config_map(f"later{len(pages)}"))
        whole = [page async for page in kube.list(MAPS, namespace, page=0, field_selector="metadata.name=m3")]

        assert pages == [["m0", "m1", "m2"], ["m3", "m4", "m5"], ["m6"]]
        assert [one["metadata"]["name"] for page in whole for one in page.items] == ["m3"]
        assert whole[0].resource_version.isdecimal()

    async def test_a_watch_goes_on_after_a_version_and_ends_in_time(self, kube: KubeClient, namespace: str) -> None:
        made = await kube.create(MAPS, namespace, config_map("a"))
        await kube.patch(MAPS, namespace, "a", {"metadata": {"labels": {"x": "y"}}})
        await kube.delete(MAPS, namespace, "a")
        version = made["metadata"]["resourceVersion"]

        told = [one async for one in kube.watch(MAPS, namespace, version, seconds=1)]

        assert [kind for kind, _ in told if kind != "BOOKMARK"] == ["MODIFIED", "DELETED"]

    async def test_kinds_are_found_by_discovery_also_when_they_come_later(self, kube: KubeClient) -> None:
        group = "later.porch.test"
        served = await kube.resource_of("porch.kpt.dev/v1alpha1", PACKAGE_REVISIONS.kind)
        before = await kube.resource_of(f"{group}/v1", "Thing")
        await kube.create(CUSTOM_RESOURCE_DEFINITIONS, None, _definition(group))
        async with asyncio.timeout(20):
            while not (after := await kube.resource_of(f"{group}/v1", "Thing", fresh=True)):
                await asyncio.sleep(0.2)
        await kube.delete(CUSTOM_RESOURCE_DEFINITIONS, None, f"things.{group}")

        assert served is not None
        assert served.plural == "packagerevisions"
        assert before is None
        assert after == Resource(group, "v1", "things", "Thing", namespaced=False)
        assert await kube.resource_of("v1", "ConfigMap") == MAPS
        assert await kube.resource_of("../../version", "Thing") is None

    async def test_a_guarded_client_reads_and_writes_nothing(self, kube: KubeClient, namespace: str) -> None:
        leads = True
        guarded = kube.guarded(lambda: leads)
        made = await guarded.create(MAPS, namespace, config_map("a"))
        leads = False

        writes: list[Callable[[], Any]] = [
            lambda: guarded.create(MAPS, namespace, config_map("b")),
            lambda: guarded.update(MAPS, made),
            lambda: guarded.patch(MAPS, namespace, "a", {}),
            lambda: guarded.delete(MAPS, namespace, "a"),
        ]
        for write in writes:
            with pytest.raises(WriteRefused):
                await write()
        assert await guarded.get(MAPS, namespace, "a") == made

    async def test_a_server_with_a_certificate_of_strangers_is_not_spoken_to(
        self, porch_server: PorchProcess, tmp_path: Path
    ) -> None:
        async with connect(kubeconfig(tmp_path, porch_server.url)) as stranger:
            with pytest.raises(Unreachable):
                await stranger.get(MAPS, "default", "a")


def _definition(group: str) -> Json:
    schema = {"openAPIV3Schema": {"type": "object"}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{group}"},
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


class TestAnswers:
    """Answers that no server should give, and none."""

    async def test_who_we_are_is_told_and_nothing_comes_compressed(self, tmp_path: Path) -> None:
        seen: list[web.Request] = []

        async def answer(request: web.Request) -> web.Response:
            seen.append(request)
            return web.json_response({})

        async with stand_in(answer) as url, connect(kubeconfig(tmp_path, url, token="t")) as client:
            await client.get(MAPS, "ns", "a%2Fb?c")

        assert seen[0].headers["User-Agent"].startswith("porch-controllers/")
        assert seen[0].headers["Accept-Encoding"] == "identity"
        assert seen[0].headers["Authorization"] == "Bearer t"
        assert seen[0].raw_path == "/api/v1/namespaces/ns/configmaps/a%252Fb%3Fc"

    async def test_redirects_are_not_followed(self, tmp_path: Path) -> None:
        paths: list[str] = []

        async def answer(request: web.Request) -> web.Response:
            paths.append(request.path)
            return web.Response(status=307, headers={"Location": "/elsewhere"})

        async with stand_in(answer) as url, connect(kubeconfig(tmp_path, url)) as client:
            with pytest.raises(StatusError) as told:
                await client.get(MAPS, "ns", "a")

        assert told.value.code == 307
        assert len(paths) == 1

    @pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"null", b'{"a":'])
    async def test_a_success_that_is_no_object_leaves_the_outcome_open(self, tmp_path: Path, body: bytes) -> None:
        async def answer(_: web.Request) -> web.Response:
            return web.Response(body=body)

        async with stand_in(answer) as url, connect(kubeconfig(tmp_path, url)) as client:
            with pytest.raises(Unanswered):
                await client.create(MAPS, "ns", {})

    @pytest.mark.parametrize("chunked", [True, False])
    async def test_an_answer_that_is_too_long_is_not_read(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunked: bool
    ) -> None:
        monkeypatch.setattr(connection, "RESPONSE_BYTES", 1 << 20)

        async def answer(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse()
            if not chunked:
                response.content_length = 5 << 20
            await response.prepare(request)
            for _ in range(5):
                await response.write(b" " * (1 << 20))
            return response

        async with stand_in(answer) as url, connect(kubeconfig(tmp_path, url)) as client:
            with pytest.raises(Unanswered, match="more than 1 MiB"):
                await client.get(MAPS, "ns", "a")

    @pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
    async def test_a_connection_that_breaks_is_tried_again_only_by_reads(self, tmp_path: Path, method: str) -> None:
        """On a kept connection, where aiohttp by itself would send PUT and DELETE again."""
        arrived: list[str] = []

        async def answer(request: web.Request) -> web.Response:
            if request.path.endswith("/warm"):
                return web.json_response({})
            await request.read()
            arrived.append(request.method)
            assert request.transport is not None
            request.transport.abort()
            return web.Response()

        async with stand_in(answer) as url, connect(kubeconfig(tmp_path, url)) as client:
            await client.get(MAPS, "ns", "warm")
            with pytest.raises(Unanswered):
                await _call(client, method)

        assert arrived == [method] * (2 if method == "GET" else 1)

    async def test_no_answer_in_time_leaves_the_outcome_open(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        hasty = Resource("", "v1", "configmaps", "ConfigMap", write_seconds=0.3)
        monkeypatch.setattr(client_module, "SHORT_SECONDS", 0.3)

        async def answer(_: web.Request) -> web.Response:
            await asyncio.sleep(30)
            return web.Response()

        async with stand_in(answer) as url, connect(kubeconfig(tmp_path, url)) as client:
            with pytest.raises(Unanswered, match=r"no answer within 0\.3 s"):
                await client.create(hasty, "ns", {})

    async def test_where_nobody_listens_nothing_was_sent(self, tmp_path: Path) -> None:
        async with connect(kubeconfig(tmp_path, f"http://127.0.0.1:{free_port()}")) as client:
            with pytest.raises(Unreachable):
                await client.create(MAPS, "ns", {})

    async def test_a_cancelled_request_ends_at_once(self, tmp_path: Path) -> None:
        async def answer(_: web.Request) -> web.Response:
            await asyncio.sleep(30)
            return web.Response()

        async with stand_in(answer) as url, connect(kubeconfig(tmp_path, url)) as client:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await client.get(MAPS, "ns", "a")

    async def test_requests_are_told_to_an_observer(self, tmp_path: Path) -> None:
        seen: list[tuple[str, str, int]] = []

        async def answer(request: web.Request) -> web.Response:
            return web.json_response({}, status=200 if request.method == "GET" else 403)

        config = None
        async with stand_in(answer) as url:
            config = kubeconfig(tmp_path, url)
            async with connect(config, observe=lambda *told: seen.append(told)) as client:
                await client.get(MAPS, "ns", "a")
                with pytest.raises(errors.Forbidden):
                    await client.delete(MAPS, "ns", "a")
        path = "/api/v1/namespaces/ns/configmaps/a"

        assert seen == [("GET", path, 200), ("DELETE", path, 403)]


async def _call(client: KubeClient, method: str) -> None:
    body = {"metadata": {"namespace": "ns", "name": "a"}}
    match method:
        case "GET":
            await client.get(MAPS, "ns", "a")
        case "POST":
            await client.create(MAPS, "ns", body)
        case "PUT":
            await client.update(MAPS, body)
        case "PATCH":
            await client.patch(MAPS, "ns", "a", {})
        case _:
            await client.delete(MAPS, "ns", "a")


class TestWatches:
    """Streams that no server should send."""

    @pytest.mark.parametrize(
        "line", [b"garbage\n", b"[]\n", b'{"type": "ADDED"}\n', b'{"type": "ADDED", "object": 3}\n', b"\xff\xfe\n"]
    )
    async def test_a_line_that_is_no_event_ends_the_watch(self, tmp_path: Path, line: bytes) -> None:
        good = event("ADDED", {"metadata": {"name": "a"}})

        got = await _watch_of(tmp_path, good + line + good, Unanswered)

        assert [kind for kind, _ in got] == ["ADDED"]

    async def test_an_error_event_is_the_error_that_it_tells(self, tmp_path: Path) -> None:
        told = errors.Expired("too old").to_status()

        assert await _watch_of(tmp_path, event("ERROR", told), errors.Expired) == []

    async def test_a_line_without_end_is_not_collected(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(connection, "LINE_BYTES", 1 << 20)

        assert await _watch_of(tmp_path, b"x" * (3 << 20), Unanswered) == []

    async def test_half_a_line_at_the_end_is_no_event(self, tmp_path: Path) -> None:
        whole = event("ADDED", {"metadata": {"name": "a"}})

        got = await _watch_of(tmp_path, whole + b"\n" + whole[:-9], None)

        assert len(got) == 1

    async def test_a_large_event_in_small_pieces_arrives_whole(self, tmp_path: Path) -> None:
        large = event("ADDED", {"metadata": {"name": "a"}, "data": {"x": "y" * (3 << 20)}})

        got = await _watch_of(tmp_path, large, None, pieces=50)

        assert len(got[0][1]["data"]["x"]) == 3 << 20

    @pytest.mark.parametrize("trickle", [False, True])
    async def test_a_watch_that_its_server_does_not_end_is_ended(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trickle: bool
    ) -> None:
        monkeypatch.setattr(client_module, "WATCH_GRACE_SECONDS", 0.2)

        async def answer(request: web.Request) -> web.StreamResponse:
            response = await start_stream(request)
            while True:
                await asyncio.sleep(0.1)
                if trickle:
                    await response.write(b"x")

        async with stand_in(answer) as url, connect(kubeconfig(tmp_path, url)) as client:
            with pytest.raises(Unanswered, match="no answer within"):
                await anext(client.watch(MAPS, "ns", "1", seconds=1))

    async def test_a_refused_watch_is_the_error_that_it_tells(self, tmp_path: Path) -> None:
        async def answer(_: web.Request) -> web.Response:
            return web.json_response(errors.Forbidden("no").to_status(), status=403)

        async with stand_in(answer) as url, connect(kubeconfig(tmp_path, url)) as client:
            with pytest.raises(errors.Forbidden):
                await anext(client.watch(MAPS, "ns", "1"))


async def _watch_of(
    folder: Path, sent: bytes, expected: type[Exception] | None, *, pieces: int = 1
) -> list[tuple[str, Json]]:
    """Watch a server that sends ``sent`` and ends; return the events, after which ``expected`` has to be raised."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = await start_stream(request)
        size = len(sent) // pieces + 1
        for start in range(0, len(sent), size):
            await response.write(sent[start : start + size])
        return response

    got: list[tuple[str, Json]] = []
    async with stand_in(answer) as url, connect(kubeconfig(folder, url)) as client:
        with pytest.raises(expected) if expected else nullcontext():
            await _collect(client, got)
    return got


async def _collect(client: KubeClient, got: list[tuple[str, Json]]) -> None:
    async for one in client.watch(MAPS, "ns", "1"):
        got.append(one)  # noqa: PERF401 - what came before an error counts, too


class TestWays:
    """What a kubeconfig says about the way to the server."""

    async def test_a_proxy_is_asked_where_the_kubeconfig_or_the_environment_names_one(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[str] = []

        async def proxy(request: web.Request) -> web.Response:
            asked.append(str(request.url))
            return web.json_response({})

        async with stand_in(proxy) as url:
            async with connect(kubeconfig(tmp_path, "http://far.example.com", {"proxy-url": url})) as client:
                await client.get(MAPS, "ns", "named")
            monkeypatch.setenv("http_proxy", url)
            monkeypatch.setenv("no_proxy", "near.example.com")
            async with connect(kubeconfig(tmp_path, "http://far.example.com")) as client:
                await client.get(MAPS, "ns", "environment")
            async with connect(kubeconfig(tmp_path, "http://near.example.com")) as client:
                with pytest.raises(Unreachable):
                    await client.get(MAPS, "ns", "direct")

        path = "http://far.example.com/api/v1/namespaces/ns/configmaps"
        assert asked == [f"{path}/named", f"{path}/environment"]

    @pytest.mark.parametrize(
        ("name", "reached"),
        [pytest.param("localhost", True, id="its"), pytest.param("example.com", False, id="another")],
    )
    async def test_the_name_that_the_certificate_has_to_be_for_can_be_told(
        self, porch_server: PorchProcess, tmp_path: Path, name: str, reached: bool
    ) -> None:
        cluster = {"certificate-authority": str(porch_server.data / "ca.crt"), "tls-server-name": name}
        async with connect(kubeconfig(tmp_path, porch_server.url, cluster)) as client:
            with pytest.raises(errors.Unauthorized if reached else Unreachable):
                await client.get(MAPS, "default", "a")

    async def test_an_authority_may_be_named_without_its_root(self, tmp_path: Path) -> None:
        named = Authority.new(tmp_path, "root").intermediate("named")
        pair, context = named.server("kube-apiserver"), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.certificate, pair.key)
        async with await asyncio.start_server(hear_and_hang_up, "127.0.0.1", 0, ssl=context) as server:
            url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            async with connect(kubeconfig(tmp_path, url, {"certificate-authority": str(named.file)})) as client:
                with pytest.raises(Unanswered):  # what was asked has arrived: the certificate was believed
                    await client.get(MAPS, "default", "a")

    async def test_certificates_are_not_verified_only_where_the_kubeconfig_says_so(
        self, porch_server: PorchProcess, tmp_path: Path
    ) -> None:
        async with connect(kubeconfig(tmp_path, porch_server.url, {"insecure-skip-tls-verify": True})) as client:
            with pytest.raises(errors.Unauthorized):
                await client.get(MAPS, "default", "a")

    async def test_a_certificate_file_that_is_none_is_said_so(self, porch_server: PorchProcess, tmp_path: Path) -> None:
        (tmp_path / "broken.crt").write_text("broken")
        cluster = {"certificate-authority": str(tmp_path / "broken.crt")}
        with pytest.raises(BadKubeconfig, match="certificates"):
            async with connect(kubeconfig(tmp_path, porch_server.url, cluster)):
                pytest.fail("there is nothing to trust")


class TestCredentials:
    """What a kubeconfig says about who we are."""

    async def test_a_server_that_moved_is_found_where_the_kubeconfig_then_says(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(kubeconfig_module, "REREAD_SECONDS", 0.0)

        async with (
            stand_in(_accepting("t")) as url,
            connect(kubeconfig(tmp_path, f"http://127.0.0.1:{free_port()}", token="t")) as client,
        ):
            with pytest.raises(Unreachable):
                await client.get(MAPS, "ns", "a")
            kubeconfig(tmp_path, url, token="t")
            assert await client.get(MAPS, "ns", "a") == {}
            (tmp_path / "kubeconfig").unlink()
            assert await client.get(MAPS, "ns", "a") == {}

    async def test_a_token_that_was_replaced_in_its_file_is_read_when_the_old_one_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(kubeconfig_module, "REREAD_SECONDS", 0.0)
        token = tmp_path / "token"
        token.write_text("old")

        async with (
            stand_in(_accepting("new")) as url,
            connect(kubeconfig(tmp_path, url, tokenFile=str(token))) as client,
        ):
            with pytest.raises(errors.Unauthorized):
                await client.get(MAPS, "ns", "a")
            token.write_text("new")
            assert await client.get(MAPS, "ns", "a") == {}

    async def test_a_program_that_gives_tokens_is_run_again_when_one_is_refused_but_not_all_the_time(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        runs = tmp_path / "runs"
        program = tmp_path / "program.py"
        credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
        program.write_text(
            f"import json, pathlib\nruns = pathlib.Path({str(runs)!r})\n"
            "number = len(runs.read_text()) if runs.exists() else 0\nruns.write_text('x' * (number + 1))\n"
            f"print(json.dumps({credential!r} | {{'status': {{'token': f't{{number}}'}}}}))\n"
        )
        user = {"command": sys.executable, "args": [str(program)], "apiVersion": credential["apiVersion"]}

        async with stand_in(_accepting("t1")) as url:
            async with connect(kubeconfig(tmp_path, url, exec=user)) as client:
                monkeypatch.setattr(kubeconfig_module, "REREAD_SECONDS", 0.0)
                assert await client.get(MAPS, "ns", "a") == {}
            monkeypatch.setattr(kubeconfig_module, "REREAD_SECONDS", 60.0)
            async with connect(kubeconfig(tmp_path, url, exec=user)) as client:
                for _ in range(3):
                    with pytest.raises(errors.Unauthorized):
                        await client.get(MAPS, "ns", "a")

        assert runs.read_text() == "xxx"

    async def test_a_pod_is_who_its_service_account_says(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, porch_server: PorchProcess
    ) -> None:
        (tmp_path / "token").write_text("of-the-pod")
        loader = kubeconfig_module._library().load_incluster_config
        monkeypatch.setitem(loader.__globals__, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
        monkeypatch.setitem(loader.__globals__, "SERVICE_CERT_FILENAME", str(porch_server.data / "ca.crt"))
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(porch_server.port))

        async with connect(None) as client:
            with pytest.raises(errors.Unauthorized):  # the server knows no such token, but it was sent over TLS
                await client.get(MAPS, "default", "a")

    @pytest.mark.parametrize(
        "content",
        [
            pytest.param(None, id="missing"),
            pytest.param("", id="empty"),
            pytest.param("[]", id="list"),
            pytest.param("{", id="no-yaml"),
            pytest.param('{"contexts": [], "current-context": "x"}', id="no-context"),
            pytest.param('{"contexts": 3, "clusters": {}, "users": "x"}', id="wrong-types"),
        ],
    )
    async def test_a_kubeconfig_that_cannot_be_used_is_said_so(self, tmp_path: Path, content: str | None) -> None:
        path = tmp_path / "kubeconfig"
        if content is not None:
            path.write_text(content)
        with pytest.raises(BadKubeconfig, match="kubeconfig"):
            async with connect(path):
                pytest.fail("there is nothing to connect to")

    async def test_outside_a_cluster_no_kubeconfig_is_said_so(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
        with pytest.raises(BadKubeconfig, match="service account"):
            async with connect(None):
                pytest.fail("there is nothing to connect to")


def _accepting(token: str) -> Callable[[web.Request], Any]:
    async def answer(request: web.Request) -> web.Response:
        if request.headers.get("Authorization") == f"Bearer {token}":
            return web.json_response({})
        return web.json_response(errors.Unauthorized().to_status(), status=401)

    return answer


def test_the_librarys_models_are_not_loaded_and_others_may_load_them() -> None:
    """They are a third of the memory of a controller that has nothing to do."""
    program = """
import asyncio, json, pathlib, sys
from krm.client.client import connect
from krm.client.kubeconfig import BadKubeconfig
async def main():
    try:
        async with connect(pathlib.Path("/nowhere")): pass
    except BadKubeconfig: pass
asyncio.run(main())
left = [name for name in sys.modules if name.startswith("kubernetes_asyncio")]
import kubernetes_asyncio
print(json.dumps([left, kubernetes_asyncio.client.V1ConfigMap.__name__, kubernetes_asyncio.client.ApiClient.__name__]))
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, timeout=60)

    assert json.loads(ran.stdout) == [[], "V1ConfigMap", "ApiClient"]
