"""Metadata filters as Pinecone documents them, evaluated on the metadata of one record.

Written after the service's documentation and without a look at the library that is tested. Where
the documentation is silent, MongoDB's operators are followed, which it names as the model: a
list matches where one of its elements does, and ``$ne`` and ``$nin`` deny ``$eq`` and ``$in``.
For a record without the field, of which nothing is said, ``$ne`` and ``$nin`` do *not* match
here: a filter that depends on it is one that a client must spell out with ``$exists``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeGuard

from pinecone_http import Json, Refused

Test = Callable[[Any, Any], bool]

MOST_VALUES = 10_000
"""Values that one ``$in`` or ``$nin`` may name."""


def passes(conditions: Json, metadata: Json) -> bool:
    """Whether a record's metadata meets the filter.

    Raises:
        Refused: it is no filter.
    """
    outcomes = []
    for key, condition in conditions.items():
        if key in ("$and", "$or"):
            if not isinstance(condition, list) or not condition:
                raise _bad(f"{key} needs a list of conditions")
            parts = [passes(part, metadata) for part in condition]
            outcomes.append(all(parts) if key == "$and" else any(parts))
        elif key.startswith("$"):
            raise _bad(f"{key} is not a valid operator")
        else:
            operators = condition if isinstance(condition, dict) else {"$eq": condition}
            if not operators:
                raise _bad(f"no operator for {key}")
            for operator, operand in operators.items():
                outcomes.append(_holds(operator, operand, key in metadata, metadata.get(key)))
    return all(outcomes)


def _holds(operator: str, operand: object, present: bool, value: object) -> bool:
    if operator == "$exists":
        if not isinstance(operand, bool):
            raise _bad("$exists needs true or false")
        return present is operand
    if operator not in _OPERATORS:
        raise _bad(f"{operator} is not a valid operator")
    if operator in ("$in", "$nin"):
        if not isinstance(operand, list) or not 0 < len(operand) <= MOST_VALUES:
            raise _bad(f"{operator} needs a list of 1 to {MOST_VALUES} values")
        if not all(isinstance(item, str | float | int) and not isinstance(item, bool) for item in operand):
            raise _bad(f"{operator} needs strings or numbers")
    elif operator in ("$eq", "$ne"):
        if not isinstance(operand, str | float | int | bool):
            raise _bad(f"{operator} needs a string, number or boolean")
    elif not _number(operand):
        raise _bad(f"{operator} needs a number")
    return present and _OPERATORS[operator](value, operand)


def _number(value: object) -> TypeGuard[float]:
    return isinstance(value, float | int) and not isinstance(value, bool)


def _equal(value: object, operand: object) -> bool:
    if isinstance(value, list):
        return any(_equal(item, operand) for item in value)
    if _number(value) and _number(operand):
        return float(value) == float(operand)
    return type(value) is type(operand) and value == operand


def _ordered(compare: Callable[[float, float], bool]) -> Test:
    return lambda value, operand: _number(value) and compare(float(value), float(operand))


_OPERATORS: dict[str, Test] = {
    "$eq": _equal,
    "$ne": lambda value, operand: not _equal(value, operand),
    "$in": lambda value, operand: any(_equal(value, item) for item in operand),
    "$nin": lambda value, operand: not any(_equal(value, item) for item in operand),
    "$gt": _ordered(lambda a, b: a > b),
    "$gte": _ordered(lambda a, b: a >= b),
    "$lt": _ordered(lambda a, b: a < b),
    "$lte": _ordered(lambda a, b: a <= b),
}


def _bad(message: str) -> Refused:
    return Refused(400, "INVALID_ARGUMENT", f"invalid filter: {message}")
