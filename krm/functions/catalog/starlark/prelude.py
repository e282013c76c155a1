"""What a script finds before its first line, and what is asked of it after its last. Source: ``kpt.md`` 4.9.

Evaluated in the script's module, before it, with more globals than the script itself has: names are bound when code
is compiled, so nothing that the script defines later can change what these functions do.
"""

BEFORE = """
def _shown(args, sep):
    return sep.join([arg if type(arg) == "string" else repr(arg) for arg in args])

def print(*args, sep=" "):
    _print(_shown(args, sep))

def fail(*args, sep=" "):
    _fail("fail: " + _shown(args, sep))

def set(items=()):
    return {item: True for item in items}

def _number(text):
    return float(text) if text in ("nan", "inf", "-inf") else int(text)

def _given(document, numbers):
    root = json.decode(document)
    for path, text in numbers:
        at = root
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = _number(text)
    return root

def _refuse(path, what):
    _fail("items%s: %s" % ("".join(["[%s]" % repr(step) for step in path]), what))

def _unwritable(root):
    stack = [root]
    for _ in range(2147483647):
        if not stack:
            return False
        value = stack.pop()
        kind = type(value)
        if kind == "dict":
            stack.extend(value.values())
            for key in value:
                if type(key) != "string":
                    return True
        elif kind in ("list", "tuple"):
            stack.extend(value)
        elif kind == "float":
            if repr(value) in ("nan", "inf", "+inf", "-inf"):
                return True
        elif kind not in ("string", "int", "bool", "NoneType"):
            return True

def _numbers_of(root):
    found = []
    stack = [((), root)]
    for _ in range(2147483647):
        if not stack:
            return found
        path, value = stack.pop()
        kind = type(value)
        if kind == "dict":
            for key, item in value.items():
                if type(key) != "string":
                    _refuse(path, "keys must be strings, got %s" % repr(key))
                stack.append((path + (key,), item))
        elif kind in ("list", "tuple"):
            stack.extend([(path + (place,), item) for place, item in enumerate(value)])
        elif kind == "float":
            if repr(value) in ("nan", "inf", "+inf", "-inf"):
                found.append((path, repr(value)))
        elif kind not in ("string", "int", "bool", "NoneType"):
            _refuse(path, "a %s cannot be part of a resource" % kind)

def _result():
    items = _resource_list.get("items")
    if items == None:
        items = []
    if type(items) not in ("list", "tuple"):
        _fail("`items` must be a list of resources, got %s" % type(items))
    if len(items) > _most_items:
        _fail("the script made more than 10000 new resources")
    for place, item in enumerate(items):
        if type(item) != "dict":
            _refuse((place,), "a resource must be a dict, got %s" % type(item))
    document = json.encode(items)
    return [document, _numbers_of(items) if _unwritable(items) else []]

_resource_list = _given(_document, _numbers)
_most_items = len(_resource_list.get("items", [])) + 10000
ctx = struct(resource_list=_resource_list, open_api=json.decode(_open_api), environment={})
"""
"""``_document``, ``_numbers``, ``_open_api``, ``_print`` and ``_fail`` are put into the module by the interpreter."""

AFTER = "_result()"
"""Evaluates to the items as JSON, and the numbers that JSON cannot hold with their places.

Encoding comes first: it refuses values that contain themselves, which the walks would follow for ever.
"""
