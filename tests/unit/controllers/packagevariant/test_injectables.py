"""Objects that packages take configuration from: who is told what, who is woken, and how much is watched (``variants.md`` 6.10).

The server is one of these tests, because refusals, silence and the passing of minutes are what matters here; the
behaviour of a real one is in ``tests/contract/test_variant_wakeups.py``.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from controllers.packagevariant.injectables import Injectables
from controllers.runtime.kind_watches import Limits, NotListed
from krm.client.client import KubeClient, Page, Unreachable
from krm.client.resources import Resource
from krm.meta.errors import BadRequest, Forbidden, MethodNotAllowed, NotFound, StatusError
from krm.variants.mutation import Listing

Json = dict[str, Any]
Key = tuple[str, str]

CONFIG_MAP = ("v1", "ConfigMap")
TEAM = ("hr.example.com/v1alpha1", "Team")
NAMESPACE = "default"
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
TEAMS = Resource("hr.example.com", "v1alpha1", "teams", "Team")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)


class Server:
    """Serves objects of some kinds in one namespace."""

    def __init__(self) -> None:
        self.resources = {
            CONFIG_MAP: CONFIG_MAPS,
            ("v1", "Node"): NODES,
            ("v1", "Secret"): Resource("", "v1", "x", "y"),
        }
        self.objects: dict[str, dict[str, Json]] = {}
        self.refused: Exception | None = None
        self.gets: list[str] = []
        self.lists: list[str] = []
        self.streams: dict[str, list[asyncio.Queue[tuple[str, Json]]]] = {}
        self.silent = False
        self.version = 1

    async def resource_of(self, api_version: str, kind: str, *, fresh: bool = False) -> Resource | None:
        return self.resources.get((api_version, kind))

    async def list(self, resource: Resource, namespace: str, *, page: int = 500, **_: str) -> AsyncIterator[Page]:
        self.lists.append(resource.plural)
        if self.silent:
            await asyncio.sleep(3600)
        if self.refused:
            raise self.refused
        yield Page(list(self.objects.get(resource.plural, {}).values())[:page], str(self.version))

    async def watch(
        self, resource: Resource, namespace: str, version: str, **_: Any
    ) -> AsyncIterator[tuple[str, Json]]:
        queue: asyncio.Queue[tuple[str, Json]] = asyncio.Queue()
        streams = self.streams.setdefault(resource.plural, [])
        streams.append(queue)
        try:
            while True:
                yield await queue.get()
        finally:
            streams.remove(queue)

    async def get(self, resource: Resource, namespace: str, name: str) -> Json:
        self.gets.append(name)
        try:
            return self.objects[resource.plural][name]
        except KeyError:
            raise NotFound(f"{name} not found") from None

    def put(self, name: str, resource: Resource = CONFIG_MAPS, **parts: Any) -> None:
        self.version += 1
        known = self.objects.setdefault(resource.plural, {})
        kind = "MODIFIED" if name in known else "ADDED"
        meta = {"namespace": NAMESPACE, "name": name, "resourceVersion": str(self.version)}
        known[name] = {"metadata": meta, **parts}
        self._tell(resource, kind, known[name])

    def drop(self, name: str, resource: Resource = CONFIG_MAPS) -> None:
        self.version += 1
        gone = self.objects[resource.plural].pop(name)
        gone["metadata"]["resourceVersion"] = str(self.version)
        self._tell(resource, "DELETED", gone)

    def _tell(self, resource: Resource, kind: str, body: Json) -> None:
        for queue in self.streams.get(resource.plural, ()):
            queue.put_nowait((kind, body))


class Askers:
    def __init__(self) -> None:
        self.selected: dict[Key, set[str]] = {}

    def names(self, key: Key) -> Iterable[str]:
        return self.selected.get(key, set())

    def asking(self, namespace: str, name: str) -> Iterable[Key]:
        return [key for key, names in self.selected.items() if key[0] == namespace and name in names]


class Rig:
    """Injectables of some variants over a server, and what they woke."""

    def __init__(self, limits: Limits) -> None:
        self.server, self.askers = Server(), Askers()
        self.woken: list[str] = []
        self.now = 1000.0
        self.injectables = Injectables(
            cast("KubeClient", self.server),  # its reads
            self.askers,
            lambda keys: self.woken.extend(sorted(name for _, name in keys)),
            limits=limits,
            clock=lambda: self.now,
        )

    def ask(self, variant: str, *names: str) -> None:
        self.askers.selected[NAMESPACE, variant] = set(names)

    async def read(self, variant: str, *types: tuple[str, str]) -> list[Listing]:
        found = await self.injectables.listings((NAMESPACE, variant), NAMESPACE, types)
        return [found[type_] for type_ in types]

    async def names(self, variant: str, type_: tuple[str, str] = CONFIG_MAP) -> dict[str, Any]:
        (listing,) = await self.read(variant, type_)
        assert not listing.error
        return {name: body.get("data", body.get("spec")) for name, body in listing.objects.items()}

    async def error(self, variant: str, type_: tuple[str, str]) -> str:
        (listing,) = await self.read(variant, type_)
        assert not listing.objects
        return listing.error

    async def settle(self) -> list[str]:
        """Let everything that can happen happen; return whom it woke."""
        for _ in range(50):
            await asyncio.sleep(0)
        woken, self.woken = self.woken, []
        return woken

    async def until(self, done: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not done():
                await asyncio.sleep(0.001)


@asynccontextmanager
async def rig(**limits: Any) -> AsyncIterator[Rig]:
    one = Rig(Limits(**{"round": 0.005, "first_list": 2.0, **limits}))
    running = asyncio.create_task(one.injectables.run())
    try:
        yield one
    finally:
        running.cancel()
        await asyncio.wait([running])
        assert running.cancelled(), running.exception()


class TestWhatIsTold:
    """Listings."""

    async def test_objects_that_are_selected_are_told_with_the_copied_field_only(self) -> None:
        async with rig() as one:
            one.ask("bar", "east")
            one.server.put("east", data={"db": "x"}, status={"secret": 1})
            (listing,) = await one.read("bar", CONFIG_MAP)

        assert listing.objects == {
            "east": {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"namespace": NAMESPACE, "name": "east"},
                "data": {"db": "x"},
            }
        }

    async def test_other_kinds_give_their_spec(self) -> None:
        async with rig() as one:
            one.server.resources[TEAM] = TEAMS
            one.ask("bar", "alpha")
            one.server.put("alpha", TEAMS, spec={"chargeCode": "ab"}, data={"not": "this"})

            assert await one.names("bar", TEAM) == {"alpha": {"chargeCode": "ab"}}

    async def test_an_object_without_the_field_is_told_without_it(self) -> None:
        async with rig() as one:
            one.ask("bar", "east")
            one.server.put("east", binaryData={"a": "eA=="})

            assert await one.names("bar") == {"east": None}

    async def test_of_thousands_of_others_one_tells_that_there_are_some(self) -> None:
        async with rig() as one:
            one.ask("bar", "east")
            for number in range(1000):
                one.server.put(f"other-{number}", data={"x": "y" * 1000})
            found = await one.names("bar")

        assert list(found.values()) == [None]
        assert "east" not in found

    async def test_where_there_is_nothing_nothing_is_told(self) -> None:
        async with rig() as one:
            one.ask("bar", "east")

            assert await one.names("bar") == {}

    async def test_a_name_that_is_asked_for_later_is_read_once(self) -> None:
        async with rig() as one:
            one.ask("bar", "east")
            one.server.put("east", data={"db": "1"})
            one.server.put("west", data={"db": "2"})
            await one.names("bar")
            one.ask("foo", "west")
            one.ask("baz", "west")

            assert await one.names("foo") == {"west": {"db": "2"}}
            assert await one.names("baz") == {"west": {"db": "2"}}
            assert one.server.gets == ["west"]
            assert one.server.lists == ["configmaps", "configmaps"]  # may it be listed; the list
            one.server.put("west", data={"db": "2"}, status={})
            assert await one.settle() == []
            one.server.put("west", data={"db": "3"})
            assert await one.settle() == ["baz", "foo"]
            assert await one.names("foo") == {"west": {"db": "3"}}

    async def test_what_was_read_then_is_not_told_again_after_it_changed_unasked(self) -> None:
        async with rig() as one:
            one.ask("bar", "east")
            one.server.put("west", data={"db": "1"})
            await one.names("bar")
            one.ask("bar", "west")
            first = await one.names("bar")
            one.ask("bar", "east")
            one.server.put("west", data={"db": "2"})
            await one.settle()
            one.ask("bar", "west")

            assert first == {"west": {"db": "1"}}
            assert await one.names("bar") == {"west": {"db": "2"}}

    async def test_many_who_ask_at_once_share_one_watch(self) -> None:
        async with rig() as one:
            one.server.put("east", data={"db": "1"})
            for number in range(50):
                one.ask(f"v{number}", "east")
            found = await asyncio.gather(*(one.names(f"v{number}") for number in range(50)))

            assert found == [{"east": {"db": "1"}}] * 50
            assert one.injectables.watches == 1
            assert one.server.lists == ["configmaps", "configmaps"]


class TestRefusals:
    """Kinds that are not read."""

    @pytest.mark.parametrize(
        ("type_", "error"),
        [
            pytest.param(("v1", "Secret"), "objects of kind Secret are never injected", id="Secret"),
            pytest.param(
                ("porch.kpt.dev/v1alpha1", "PackageRevisionResources"),
                "objects of porch.kpt.dev are never injected",
                id="packages",
            ),
        ],
    )
    async def test_secrets_and_packages_are_never_read(self, type_: tuple[str, str], error: str) -> None:
        async with rig() as one:
            one.ask("bar", "east")
            one.server.resources[type_] = TEAMS

            assert await one.error("bar", type_) == error
            assert one.server.lists == []

    async def test_cluster_scoped_objects_are_not_injected(self) -> None:
        async with rig() as one:
            error = await one.error("bar", ("v1", "Node"))

        assert error == "v1.Node is cluster-scoped: only objects in the namespace of the variant are injected"

    async def test_a_kind_that_is_not_served_is_told_so_and_others_still_work(self) -> None:
        async with rig() as one:
            one.ask("bar", "east")
            one.server.put("east", data={"db": "1"})
            team, config = await one.read("bar", TEAM, CONFIG_MAP)

        assert team.error == 'no matches for kind "Team" in version "hr.example.com/v1alpha1"'
        assert "east" in config.objects

    @pytest.mark.parametrize("refusal", [BadRequest, MethodNotAllowed, NotFound])
    async def test_what_may_not_be_listed_is_told_with_the_servers_words(self, refusal: type[StatusError]) -> None:
        async with rig() as one:
            one.server.refused = refusal("configmaps is forbidden")

            assert await one.error("bar", CONFIG_MAP) == "configmaps is forbidden"
            assert one.injectables.watches == 0

    async def test_what_is_forbidden_is_told_with_what_would_allow_it(self) -> None:
        async with rig() as one:
            one.server.refused = Forbidden("configmaps is forbidden")

            assert await one.error("bar", CONFIG_MAP) == (
                "configmaps is forbidden; a ClusterRole with the label config.porch.kpt.dev/aggregate-to-injectables gives "
                "that right"
            )

    async def test_a_server_that_cannot_be_reached_is_no_answer(self) -> None:
        async with rig() as one:
            one.server.refused = Unreachable("no route")
            with pytest.raises(Unreachable):
                await one.read("bar", CONFIG_MAP)
            one.server.refused = None

            assert await one.names("bar") == {}

    async def test_a_first_list_that_does_not_come_is_waited_for_so_long(self) -> None:
        async with rig(first_list=0.02) as one:
            one.server.silent = True
            with pytest.raises(NotListed):
                await one.read("bar", CONFIG_MAP)

    async def test_a_definition_that_comes_wakes_who_was_refused(self) -> None:
        async with rig() as one:
            one.ask("bar", "alpha")
            await one.error("bar", TEAM)
            one.server.resources[TEAM] = TEAMS
            one.injectables.definitions_changed({TEAM})
            await one.until(lambda: one.woken == ["bar"])

            assert await one.names("bar", TEAM) == {}

    async def test_a_definition_that_is_served_a_moment_later_is_looked_for_again(self) -> None:
        async with rig() as one:
            await one.error("bar", TEAM)
            one.injectables.definitions_changed({TEAM})
            await one.settle()
            one.server.resources[TEAM] = TEAMS
            await one.until(lambda: one.woken == ["bar"])

    async def test_a_definition_that_goes_wakes_and_ends_the_watch(self) -> None:
        async with rig() as one:
            one.server.resources[TEAM] = TEAMS
            await one.names("bar", TEAM)
            del one.server.resources[TEAM]
            one.injectables.definitions_changed({TEAM})
            await one.until(lambda: one.woken == ["bar"])

            assert one.injectables.watches == 0
            assert "no matches" in await one.error("bar", TEAM)

    async def test_a_refusal_is_questioned_every_minute(self) -> None:
        async with rig() as one:
            one.server.refused = Forbidden("configmaps is forbidden")
            await one.error("bar", CONFIG_MAP)
            one.server.refused = None
            one.now += 59
            await asyncio.sleep(0.02)
            early = await one.settle()
            one.now += 2
            await one.until(lambda: one.woken == ["bar"])

        assert early == []

    async def test_a_refusal_that_stays_wakes_nobody(self) -> None:
        async with rig() as one:
            one.server.refused = Forbidden("configmaps is forbidden")
            await one.error("bar", CONFIG_MAP)
            one.now += 61
            before = len(one.server.lists)
            await one.until(lambda: len(one.server.lists) > before)

            assert await one.settle() == []

    async def test_watches_are_bounded_and_idle_ones_make_room(self) -> None:
        async with rig(watches=1) as one:
            one.server.resources[TEAM] = TEAMS
            await one.names("bar")
            refused = await one.error("foo", TEAM)
            one.injectables.forget((NAMESPACE, "bar"))
            one.now += 61
            await one.until(lambda: one.woken == ["foo"])
            allowed = await one.error("foo", TEAM)

            assert refused == "1 kinds are watched for injection already"
            assert allowed == ""
            assert one.injectables.watches == 1


class TestWhoIsWoken:
    """Events."""

    async def test_a_change_wakes_those_who_select_the_object(self) -> None:
        async with rig() as one:
            one.server.put("east", data={"db": "1"})
            for name, selected in (("bar", "east"), ("baz", "east"), ("foo", "west")):
                one.ask(name, selected)
                await one.names(name)
            one.server.put("east", data={"db": "2"})

            assert await one.settle() == ["bar", "baz"]
            assert await one.names("bar") == {"east": {"db": "2"}}

    async def test_the_first_list_wakes_nobody(self) -> None:
        async with rig() as one:
            one.ask("bar", "east")
            one.server.put("east", data={"db": "1"})
            await one.names("bar")

            assert await one.settle() == []

    async def test_a_change_beside_the_copied_field_wakes_nobody(self) -> None:
        async with rig() as one:
            one.ask("bar", "east")
            one.server.put("east", data={"db": "1"})
            await one.names("bar")
            one.server.put("east", data={"db": "1"}, status={"phase": "Ready"})

            assert await one.settle() == []

    async def test_objects_that_nobody_selects_wake_nobody(self) -> None:
        async with rig() as one:
            one.ask("bar", "east")
            one.server.put("other", data={})
            await one.names("bar")
            one.server.put("other", data={"x": "y"})
            one.server.put("another", data={})
            one.server.drop("another")

            assert await one.settle() == []

    async def test_appearing_and_going_wake(self) -> None:
        async with rig() as one:
            one.ask("bar", "east")
            one.server.put("other", data={})
            await one.names("bar")
            one.server.put("east", data={"db": "1"})
            came = await one.settle()
            one.server.drop("east")

            assert came == ["bar"]
            assert await one.settle() == ["bar"]

    async def test_the_first_of_a_kind_and_the_last_wake_all_who_read_it(self) -> None:
        async with rig() as one:
            one.ask("bar", "east")
            await one.names("bar")
            one.server.put("other", data={})
            came = await one.settle()
            one.server.drop("other")

            assert came == ["bar"]
            assert await one.settle() == ["bar"]

    async def test_a_variant_that_has_no_such_point_any_more_is_not_woken(self) -> None:
        async with rig() as one:
            one.ask("bar", "east")
            one.server.put("east", data={"db": "1"})
            await one.names("bar")
            await one.read("bar")
            one.server.put("east", data={"db": "2"})

            assert await one.settle() == []

    async def test_a_forgotten_variant_is_not_woken(self) -> None:
        async with rig() as one:
            one.ask("bar", "east")
            await one.names("bar")
            one.injectables.forget((NAMESPACE, "bar"))
            one.server.put("east", data={"db": "2"})

            assert await one.settle() == []


class TestIdle:
    """Watches that nobody needs."""

    async def test_five_minutes_after_the_last_reader_left_a_watch_ends(self) -> None:
        async with rig() as one:
            await one.names("bar")
            await one.names("foo")
            one.injectables.forget((NAMESPACE, "bar"))
            one.now += 301
            await asyncio.sleep(0.02)
            used = one.injectables.watches
            one.injectables.forget((NAMESPACE, "foo"))
            one.now += 299
            await asyncio.sleep(0.02)
            idle = one.injectables.watches
            one.now += 2
            await one.until(lambda: one.injectables.watches == 0)
            await one.until(lambda: one.server.streams["configmaps"] == [])

        assert (used, idle) == (1, 1)

    async def test_who_asks_in_time_finds_the_watch(self) -> None:
        async with rig() as one:
            one.ask("bar", "east")
            await one.names("bar")
            one.injectables.forget((NAMESPACE, "bar"))
            one.now += 200
            one.server.put("east", data={"db": "1"})
            await one.settle()

            assert await one.names("bar") == {"east": {"db": "1"}}
            assert one.server.lists == ["configmaps", "configmaps"]

    async def test_who_asks_later_gets_a_new_list(self) -> None:
        async with rig() as one:
            one.ask("bar", "east")
            await one.names("bar")
            one.injectables.forget((NAMESPACE, "bar"))
            one.now += 301
            await one.until(lambda: one.injectables.watches == 0)
            one.server.put("east", data={"db": "1"})

            assert await one.names("bar") == {"east": {"db": "1"}}


class TestReading:
    """The value that tells whether a variant would be told the same."""

    async def test_it_follows_what_is_told(self) -> None:
        async with rig() as one:
            one.ask("bar", "east", "west")
            readings = [one.injectables.reading((NAMESPACE, "bar"))]
            await one.read("bar", CONFIG_MAP, TEAM)
            readings.append(one.injectables.reading((NAMESPACE, "bar")))
            one.server.put("other")
            await one.settle()
            readings.append(one.injectables.reading((NAMESPACE, "bar")))
            one.server.put("east", data={"db": "1"})
            await one.settle()
            readings.append(one.injectables.reading((NAMESPACE, "bar")))
            before = readings[-1]
            one.server.put("east", data={"db": "1"}, status={})
            one.server.put("more")
            await one.settle()

            assert len(set(readings)) == len(readings)
            assert one.injectables.reading((NAMESPACE, "bar")) == before
