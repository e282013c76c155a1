"""What a served kind is: one definition, built in or from a version of a CustomResourceDefinition.

Routes, discovery, OpenAPI, tables, validation and selectors all follow from it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from apiserver.machinery.apply.typed import Type, compile_type
from apiserver.machinery.schema import CompiledSchema
from krm.meta.errors import Cause, ResourceName

Json = dict[str, Any]
Schema = dict[str, Any]
"""A structural OpenAPI v3 schema: ``type`` on every node, no ``$ref``."""


@dataclass(frozen=True, slots=True)
class Column:
    """One printer column; ``value`` takes the decoded object and returns a cell (None: missing)."""

    name: str
    type: str
    """string, integer, number, boolean or date (a timestamp, shown as the time since then)."""
    value: Callable[[Json], Any]
    description: str = ""
    format: str = ""
    priority: int = 0
    told_type: str = ""
    """The type that clients are told, if another: Kubernetes calls the ages of its own kinds strings."""


@dataclass(frozen=True, eq=False)
class Definition:
    """A kind with its resource: names, scope, schema, columns, selectable fields and rules.

    ``schema`` describes the whole object except that ``metadata`` is always ObjectMeta. ``selectable``
    maps a field selector's name to the extractor of its value; metadata.name and metadata.namespace are always
    selectable. ``validate`` sees (new, old or None) after schema validation and returns causes. ``prepare``
    may fill or normalise (new, old or None) in place before validation. ``label`` tells whether the name must be a
    DNS label rather than a subdomain.
    """

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    schema: Schema
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    status: bool = False
    """Has a status subresource: the main resource ignores status, /status ignores the rest."""
    selectable: Mapping[str, Callable[[Json], str]] = field(default_factory=dict)
    indexed: tuple[str, ...] = ()
    """All fields that the kind's versions index, in order, where this version lets clients select fewer."""
    strategic: bool = False
    """Accepts strategic merge patches, and says so in OpenAPI (core kinds)."""
    strategic_unlisted: bool = False
    """Accepts them without saying so: kubectl takes them wherever they are listed, and knows the merge keys of core
    kinds only (porch kinds)."""
    merge_keys: Mapping[str, str] = field(default_factory=dict)
    """Dotted path of a list → its strategic merge key."""
    unconditional_update: bool = False
    """PUT without resourceVersion is allowed."""
    create_on_update: bool = False
    """PUT of a missing object creates it."""
    generation: bool = True
    custom: bool = False
    """Described by a CustomResourceDefinition: values of the wrong type are Invalid (422), and what was wrong before
    an update and has not changed is let pass."""
    documents: tuple[tuple[str, ...], ...] = ()
    """Paths, lists left out, of fields that hold JSON schemas, which contain themselves."""
    slow: bool = False
    """Checking an object can take longer than the event loop should wait, so it is done in a thread."""
    label_name: bool = False
    free_name: bool = False
    """The name may be any text that is one segment of a path (RBAC kinds)."""
    sealed: bool = False
    patchable: bool = True
    """What can be updated can be patched (everything but the finalizers of a Namespace)."""
    delete_collection: bool = True
    """One request can delete all objects that it selects (all kinds but Namespace)."""
    list_kind_name: str = ""
    """The kind of its lists, where that is not ``<kind>List``."""
    stored_as: ResourceName | None = None
    """The resource whose stored objects it shows in a form of its own; None: it has objects of its own."""
    stored_version: str = ""
    """The version that objects are stored in, where that is another one."""
    deprecation: str = ""
    """What every client of a deprecated version is warned with."""
    served_as: ResourceName | None = None
    """The resource that a subresource of another kind (a Scale) is part of; None: the kind's own."""
    initial: Json = field(default_factory=dict)
    """What an object of the kind always has, whoever creates it: nobody is recorded as the author of these fields."""
    components: Mapping[str, tuple[str, Callable[[str], Schema]]] = field(default_factory=dict)
    """Parts of the schema that OpenAPI documents show by reference, since they contain themselves.

    Dotted path → the part's name, and what makes its schema when told the full name of its component.
    """
    prepare: Callable[[Json, Json | None], None] | None = None
    validate: Callable[[Json, Json | None], Sequence[Cause]] | None = None

    @cached_property
    def compiled(self) -> CompiledSchema:
        """The schema, ready for use; compiled at the first call and shared by all who serve the kind.

        Raises:
            SchemaError: it cannot be compiled.
        """
        return CompiledSchema(self.schema, custom=self.custom, documents=self.documents)

    @cached_property
    def owned(self) -> Type:
        """What field ownership needs to know of the kind; compiled at the first write and shared by all doors to it."""
        return compile_type(self.schema)

    @property
    def resource(self) -> ResourceName:
        """The resource for messages and storage keys (``str()`` gives ``plural.group``)."""
        return self.served_as or ResourceName(self.plural, self.group)

    @property
    def list_kind(self) -> str:
        """The kind of its lists."""
        return self.list_kind_name or f"{self.kind}List"

    @property
    def api_version(self) -> str:
        """``group/version``, or the version alone for core kinds."""
        return f"{self.group}/{self.version}" if self.group else self.version
