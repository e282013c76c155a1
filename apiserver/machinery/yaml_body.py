"""YAML request bodies as JSON values: bounded depth and size, no dates, duplicate keys reported.

Depth is checked on the event stream before anything recursive runs, and aliases are refused: a few
of them make a small text stand for gigabytes.
"""

from collections import Counter
from collections.abc import Hashable
from typing import Any

import orjson
import yaml

MAX_EVENTS = 2_000_000
"""Parser events of one body; a 6 MiB text of one-letter items stays around a million."""


class YamlRefused(Exception):
    """The text is not YAML, or not YAML that is accepted here."""


def parse_yaml(data: bytes, max_depth: int) -> tuple[Any, list[str]]:
    """Return the value of a one-document text, and the keys that a mapping has twice.

    Raises:
        YamlRefused: it cannot be parsed, is too deep, uses aliases or has a value without a JSON form.
    """
    try:
        _check_events(data, max_depth)
        loader = _Loader(data)
        try:
            value = loader.get_single_data()
        finally:
            loader.dispose()
        return orjson.loads(orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)), loader.duplicates
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        raise YamlRefused(f"yaml: {str(error)[:200]}") from error


def _check_events(data: bytes, max_depth: int) -> None:
    depth = 0
    for count, event in enumerate(yaml.parse(data, Loader=yaml.CSafeLoader)):
        if isinstance(event, yaml.AliasEvent):
            raise YamlRefused("yaml: aliases are not accepted in request bodies")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > max_depth or count > MAX_EVENTS:
            raise YamlRefused(f"yaml: nested deeper than {max_depth} levels, or more than {MAX_EVENTS} items")


class _Loader(yaml.CSafeLoader):
    """The safe loader with JSON's types: dates stay text, a key that comes twice is remembered."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.duplicates: list[str] = []

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        made = super().construct_mapping(node, deep)
        if len(made) != len(node.value):
            times = Counter(str(key.value) for key, _ in node.value)
            self.duplicates += [key for key, count in times.items() if count > 1]
        return made


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
