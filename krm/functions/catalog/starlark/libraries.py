"""The modules that scripts can ``load``. Source: ``kpt.md`` 4.9.

Each is a few lines of Starlark that give it its shape, over Python functions that do the work. A module is made
when a script first asks for it and frozen: what one script does cannot be seen by the next.
"""

from functools import cache

import starlark

from krm.functions.catalog.starlark import calculations, calendar, encodings, expressions
from krm.functions.catalog.starlark.library import Library, LibraryError

_KRMFN = """
def _match_gvk(resource, api_version, kind):
    return resource.get("apiVersion") == api_version and resource.get("kind") == kind

def _metadata(resource):
    return resource.get("metadata") or {}

krmfn = struct(
    match_gvk=_match_gvk,
    match_name=lambda resource, name: _metadata(resource).get("name") == name,
    match_namespace=lambda resource, namespace: _metadata(resource).get("namespace") == namespace,
)
"""


def _unavailable(name: str, *members: str, call: bool = False) -> Library:
    """Return a module that can be loaded, as upstream's, and says on use that it is not offered."""
    refusal = f'fail("{name} is not offered here: scripts have no network, archives or HTML documents")'
    text = f"def _refuse(*args, **kwargs):\n    {refusal}\n"
    made = "_refuse" if call else f"struct({', '.join(f'{member}=_refuse' for member in members)})"
    return Library(f"{text}{name} = {made}\n")


LIBRARIES = {
    "bsoup.star": _unavailable("bsoup", "parseHtml"),
    "encoding/base64.star": encodings.BASE64,
    "encoding/csv.star": encodings.CSV,
    "encoding/json.star": encodings.JSON,
    "encoding/yaml.star": encodings.YAML,
    "geo.star": _unavailable("geo", "Point", "Line", "Polygon", "MultiPolygon", "within", "intersects", "parseGeoJSON"),
    "hash.star": encodings.HASH,
    "html.star": _unavailable("html", call=True),
    "http.star": _unavailable("http", "get", "put", "post", "patch", "delete", "options"),
    "krmfn.star": Library(_KRMFN),
    "math.star": calculations.MATH,
    "re.star": expressions.RE,
    "time.star": calendar.TIME,
    "xlsx.star": _unavailable("xlsx", "get_url"),
    "zipfile.star": _unavailable("ZipFile", call=True),
}


@cache
def load_library(name: str) -> starlark.FrozenModule:
    """Return the module ``name``.

    Raises:
        LibraryError: there is none of that name.
    """
    library = LIBRARIES.get(name)
    if library is None:
        raise LibraryError(f"cannot load {name}: no such module; there are {', '.join(LIBRARIES)}")
    return library.module(name)
