"""What the server serves now: the built-in kinds from the start, custom resources as their definitions come and go.

The one place that knows; the machinery, the namespace controller and the garbage collector are told from here.
"""

from collections.abc import Callable, Sequence

from apiserver.machinery.rest import Served
from krm.meta.errors import ResourceName

KindObserver = Callable[[ResourceName, Sequence[Served]], None]
"""(resource, its versions as served now; none: it is gone). Called in the event loop, and must not raise."""


class ServedKinds:
    """The served kinds by resource, each with its versions, the preferred one first."""

    def __init__(self, built_in: Sequence[Served] = ()) -> None:
        self._kinds: dict[ResourceName, tuple[Served, ...]] = {}
        self._observers: list[KindObserver] = []
        self._publish: Callable[[Sequence[Served]], None] | None = None
        for one in built_in:
            name = resource_of(one)
            self._kinds[name] = (*self._kinds.get(name, ()), one)

    @property
    def all(self) -> list[Served]:
        """Everything served, in the order it was added."""
        return [one for versions in self._kinds.values() for one in versions]

    def find(self, resource: ResourceName) -> Sequence[Served]:
        """Return the versions of a resource; none when it is not served."""
        return self._kinds.get(resource, ())

    def publish_to(self, publish: Callable[[Sequence[Served]], None]) -> None:
        """Name who answers requests (``ApiMachinery.replace``): it is told of everything after each change."""
        self._publish = publish
        publish(self.all)

    def observe(self, observer: KindObserver) -> None:
        """Call ``observer`` for each resource there is, and for each that comes, changes or goes."""
        self._observers.append(observer)
        for resource, versions in list(self._kinds.items()):
            observer(resource, versions)

    def add(self, served: Sequence[Served]) -> None:
        """Serve these versions, all of one resource, in place of those served of it before.

        Raises:
            ValueError: they are none, or of several resources.
        """
        resources = {resource_of(one) for one in served}
        if len(resources) != 1:
            raise ValueError("exactly one resource is added at a time")
        self._change(resources.pop(), tuple(served))

    def remove(self, resource: ResourceName) -> None:
        """Serve no version of a resource any longer; one that is not served is left at that."""
        if resource in self._kinds:
            self._change(resource, ())

    def _change(self, resource: ResourceName, versions: tuple[Served, ...]) -> None:
        if versions:
            self._kinds[resource] = versions
        else:
            del self._kinds[resource]
        if self._publish is not None:
            self._publish(self.all)
        for observer in self._observers:
            observer(resource, versions)


def resource_of(served: Served) -> ResourceName:
    """Return the resource that a served version belongs to."""
    resource: ResourceName = served.resource.definition.resource
    return resource
