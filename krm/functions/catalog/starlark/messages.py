"""The interpreter's error reports as the messages that users of kpt know. Source: ``kpt.md`` 4.9.

Positions are exact; the texts are those of upstream's interpreter for what scripts commonly get wrong, and this
interpreter's own for the rest.
"""

import re

SCRIPT = "<script>"
"""The file name that the script is parsed under: never text from a package, so that reports can be read back."""

_RAISED_BY_MODULE = re.compile(r"^(?:LibraryError|fail): ")
"""Put before what a module's Python functions raise, and its Starlark functions fail with."""
_POSITION = re.compile(r"^ *--> (?P<file>.*):(?P<line>\d+):(?P<column>\d+)$", re.MULTILINE)
_CALLED_FROM = re.compile(rf"^  \* {re.escape(SCRIPT)}:(?P<line>\d+), in ", re.MULTILINE)
_UNEXPECTED = re.compile(r"Parse error: unexpected (?P<got>.*) here, expected one of (?P<want>.*)", re.DOTALL)
_GOT = (
    (re.compile(r"new line$"), "newline"),
    (re.compile(r"new indentation block$"), "indent"),
    (re.compile(r"(?:dedentation|end of indentation block).*$"), "outdent"),
    (re.compile(r"identifier '.*'$", re.DOTALL), "identifier"),
    (re.compile(r"string literal .*$", re.DOTALL), "string literal"),
    (re.compile(r"integer literal .*$", re.DOTALL), "int literal"),
    (re.compile(r"float literal .*$", re.DOTALL), "float literal"),
    (re.compile(r"keyword '(.*)'$"), r"\1"),
    (re.compile(r"symbol ('.*')$"), r"\1"),
)
_WANT = {
    "IDENTIFIER": "identifier",
    "INDENT": "indent",
    "\\n": "newline",
    "STRING": "string literal",
}
_TEXTS = (
    (r"Parse error: cannot use reserved keyword `(\w+)`", r"syntax error: \1 is a reserved word"),
    (r"Parse error: unfinished string literal", r"unexpected newline in string"),
    (r"Parse error: invalid input `(.)`", r"unexpected input character '\1'"),
    (r"`return` cannot be used outside of a `def` function", r"return statement not within a function"),
    (r"`(break|continue)` cannot be used outside of a `for` loop", r"\1 not in a loop"),
    (r"Variable `(\w+)` not found(?:, did you mean `\w+`\?)?", r"undefined: \1"),
    (r"Key `(.*)` was not found", r"key \1 not in dict"),
    (r"Index `(.*)` is out of bound", r"index \1 out of range"),
    (r"Operation `\[\]` not supported for types `(\w+)` and `(\w+)`", r"unhandled index operation \1[\2]"),
    (r"Operation `cmp\(\)` not supported for types `(\w+)` and `(\w+)`", r"cannot compare \1 with \2"),
    (r"Operation `len\(\)` not supported on type `(\w+)`", r"len: value of type \1 has no len"),
    (r"Value of type `(\w+)` is not hashable", r"unhashable type: \1"),
    (r"Immutable", r"value is immutable: it is None, a constant, or belongs to a module"),
    (r"Operation `(\W+|in|not in)` not supported for types `(\w+)` and `(\w+)`", r"unknown binary op: \2 \1 \3"),
    (
        r"Object of type `(\w+)` has no attribute `(\w+)`, did you mean `(\w+)`\?",
        r"\1 has no .\2 field or method (did you mean .\3?)",
    ),
    (r"Object of type `(\w+)` has no attribute `(\w+)`", r"\1 has no .\2 field or method"),
    (r"Operation `\(iter\)` not supported on type `(\w+)`", r"\1 value is not iterable"),
    (r"Operation `call\(\)` not supported on type `(\w+)`", r"invalid call of non-function (\1)"),
    (r"float division by zero: .*", r"floating-point division by zero"),
    (r"Floor division by zero: .*", r"floored division by zero"),
    (r"Missing parameter `(\w+)` for call to `(?:.*\.)?(\w+)`", r"function \2 missing 1 argument (\1)"),
    (r"Local variable `(\w+)` referenced before assignment", r"local variable \1 referenced before assignment"),
)
_KNOWN = tuple((re.compile(pattern, re.DOTALL), text) for pattern, text in _TEXTS)


class Report:
    """One error report of the interpreter, taken apart."""

    def __init__(self, report: str) -> None:
        start = 0 if report.startswith("error: ") else report.find("\nerror: ") + 1
        positions = list(_POSITION.finditer(report))
        end = positions[-1].start() - 1 if positions else len(report)
        self.text = report[start:end].removeprefix("error: ")
        self.text = _RAISED_BY_MODULE.sub("", self.text).strip()
        self.line = self.column = 0
        if positions and positions[-1]["file"] == SCRIPT:
            self.line, self.column = int(positions[-1]["line"]), int(positions[-1]["column"])
        elif callers := _CALLED_FROM.findall(report):
            self.line = int(callers[-1])

    def message(self, program: str, line: int) -> str:
        """Return the message for users, the report's line being ``line`` of the script ``program``."""
        where = [program, *map(str, filter(None, (line, self.column)))] if line else [program]
        return f"{':'.join(where)}: {_familiar(self.text)}"


def _familiar(text: str) -> str:
    if unexpected := _UNEXPECTED.fullmatch(text):
        return f"got {_got(unexpected['got'])}{_wanted(unexpected['want'])}"
    for pattern, familiar in _KNOWN:
        if found := pattern.fullmatch(text):
            return found.expand(familiar)
    return text.replace(f"{SCRIPT}.", "").removeprefix("Parse error: ")


def _got(token: str) -> str:
    for pattern, name in _GOT:
        if found := pattern.fullmatch(token):
            return found.expand(name)
    return token


def _wanted(expected: str) -> str:
    """Name what the grammar wants, where one word does."""
    tokens = re.findall(r'"((?:[^"\\]|\\.)+)"', expected)
    if len(tokens) == 1:
        return f", want {_WANT.get(tokens[0]) or repr(tokens[0])}"
    if {"IDENTIFIER", "INTEGER", "("} <= set(tokens) and not {"=", "and", "pass", "DEDENT"} & set(tokens):
        return ", want primary expression"
    if set(tokens) == {"\\n", "INDENT"}:
        return ", want indent"
    return ""
