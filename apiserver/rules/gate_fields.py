"""What clients may say in ``spec.readinessGates`` and ``status.conditions``, and what becomes of it in the Kptfile.

An update replaces the lists (``porch-api.md`` 4.3), a create adds to those of its source (``variants.md`` R1). Either way
the server's gate and what only a render changes stay as they are (``decisions.md`` 14). Lists that a client does not send
are kept.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from apiserver.rules.pipeline_gate import SERVERS, without_condition, without_gate
from krm.meta.errors import Cause, required_value

Json = dict[str, Any]

STATUSES: Final = ("True", "False", "Unknown")
FIELDS: Final = ("type", "status", "reason", "message")
"""Of a condition; a Kptfile may have no others."""
MOST: Final = 100
"""Gates, and conditions, of one revision."""
_LONGEST: Final = {"type": 316, "reason": 1024, "message": 32768}
"""Characters; those of a Kubernetes condition."""
_GATES, _CONDITIONS = "spec.readinessGates", "status.conditions"


def check_gate_fields(wanted: Json, stored: Json) -> list[Cause]:
    """Return what is wrong with the gates and conditions that a client sends: one cause per problem.

    The server's own types are not looked at, since they are ignored. Neither is what ``stored`` has: a Kptfile may say what
    clients may not, and who reads it and sends it back changes nothing.
    """
    causes = []
    if (gates := gates_in(wanted)) != gates_in(stored):
        causes += _check_list(gates, _GATES, "conditionType")
    conditions, known = conditions_in(wanted), conditions_in(stored)
    if conditions is None or conditions == known:
        return causes
    causes += _check_list(conditions, _CONDITIONS, "type")
    for place, condition in enumerate(conditions[:MOST]):
        if condition.get("type") not in SERVERS and condition not in (known or ()):
            causes += _check_condition(condition, f"{_CONDITIONS}[{place}]")
    return causes


def gates_in(obj: Json) -> list[Json] | None:
    """Return the gates that an object has or sends, None where it does not mention any."""
    gates = (obj.get("spec") or {}).get("readinessGates")
    return None if gates is None else [gate or {} for gate in gates]


def conditions_in(obj: Json) -> list[Json] | None:
    """Return the conditions that an object has or sends, None where it does not mention any."""
    conditions = (obj.get("status") or {}).get("conditions")
    return None if conditions is None else [condition or {} for condition in conditions]


def _check_list(items: Sequence[Json] | None, field: str, key: str) -> list[Cause]:
    if items is None:
        return []
    if len(items) > MOST:
        return [Cause("FieldValueTooMany", f"Too many: {len(items)}: must have at most {MOST} items", field)]
    causes = []
    seen: set[str] = set()
    for place, item in enumerate(items):
        name, where = item.get(key) or "", f"{field}[{place}].{key}"
        if not name:
            causes.append(required_value(where, "a type is required"))
        elif name in seen and name not in SERVERS:
            causes.append(Cause("FieldValueDuplicate", f'Duplicate value: "{name}"', where))
        elif len(name) > _LONGEST["type"]:
            causes.append(_too_long(where, _LONGEST["type"]))
        seen.add(name)
    return causes


def _check_condition(condition: Json, field: str) -> list[Cause]:
    causes = []
    status = condition.get("status") or ""
    if status not in STATUSES:
        supported = ", ".join(f'"{each}"' for each in STATUSES)
        why = f'Unsupported value: "{status[:40]}": supported values: {supported}'
        causes.append(Cause("FieldValueNotSupported", why, f"{field}.status"))
    causes += [
        _too_long(f"{field}.{part}", _LONGEST[part])
        for part in ("reason", "message")
        if len(condition.get(part) or "") > _LONGEST[part]
    ]
    return causes


def _too_long(field: str, most: int) -> Cause:
    return Cause("FieldValueTooLong", f"Too long: may not be more than {most} characters", field)


def own_gates(obj: Json) -> list[str] | None:
    """Return the types of the package's own gates that an object has or sends, None where it does not mention any."""
    gates = gates_in(obj)
    return None if gates is None else [str(gate.get("conditionType")) for gate in without_gate(gates)]


def replaced_conditions(stored: Json, wanted: Json) -> list[Json] | None:
    """Return the conditions that the Kptfile of ``stored`` has after an update, None to keep those that it has.

    Types that stay keep their order, new ones follow, those that are not sent go.
    """
    sent, present = conditions_in(wanted), conditions_in(stored)
    if sent is None or sent == present:
        return None
    new = {str(condition.get("type")): _kptfile_form(condition) for condition in sent}
    kept: dict[str, Json] = {}
    for condition in without_condition(present or ()):
        name = str(condition.get("type"))
        if name in SERVERS:
            kept[name] = dict(condition)
        elif name in new:
            kept[name] = new[name]
    kept |= {name: condition for name, condition in new.items() if name not in SERVERS}
    return list(kept.values())


def merged_gates(present: Sequence[str], wanted: Json) -> list[str] | None:
    """Return the gates' types of a new revision whose source has ``present``, None to keep just those."""
    sent = own_gates(wanted)
    return None if sent is None else [*present, *(gate for gate in sent if gate not in present)]


def merged_conditions(present: Sequence[Mapping[str, Any]], wanted: Json) -> list[Json] | None:
    """Return the conditions of a new revision: the source's, in place of which come those of the same types."""
    sent = conditions_in(wanted)
    if sent is None:
        return None
    new = {str(each.get("type")): _kptfile_form(each) for each in sent if each.get("type") not in SERVERS}
    kept = {str(condition.get("type")): dict(condition) for condition in present}
    return list((kept | new).values())


def _kptfile_form(condition: Json) -> Json:
    return {field: condition[field] for field in FIELDS if condition.get(field)}
