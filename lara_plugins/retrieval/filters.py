"""Metadata filters: Pinecone's operators, with one meaning in every index.

Pinecone's filters are modelled on MongoDB's and leave some cases open. Here they are decided, and
what is sent to Pinecone is spelled out so that nothing depends on how the service decides them:
a passage without the field passes ``$ne`` and ``$nin``; a list passes where one of its elements
does; numbers are compared as 64-bit floats and are never equal to a bool.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from lara_plugins.arguments import is_utf8
from lara_plugins.errors import InvalidArgument
from lara_plugins.passages import MetadataValue, Passage

Filter: TypeAlias = Mapping[str, object]
"""Such as ``{"year": {"$gte": 2020}, "lang": "en"}`` or ``{"$or": [...]}``."""

Fields: TypeAlias = Mapping[str, MetadataValue]

RESERVED = "lara_"
"""Fields whose names begin so are an index's own."""

SOURCE = "source"
"""Names a passage's source in a filter, unless its metadata has a key of that name."""

MOST_VALUES = 10_000
"""Pinecone's limit of the values in one ``$in`` or ``$nin``."""

DEEPEST = 20
"""``$and`` and ``$or`` inside one another."""

MOST_WHOLE = 2**53
"""Whole numbers up to here are exact as 64-bit floats, as which Pinecone keeps all numbers."""

_ORDERED: dict[str, Callable[[float, float], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_OPERATORS = ("$eq", "$ne", *_ORDERED, "$in", "$nin", "$exists")


class Condition(Protocol):
    """A filter that has been checked."""

    def passes(self, fields: Fields) -> bool:
        """Whether a passage with these fields is searched."""

    def spelled_out(self) -> dict[str, object]:
        """The filter as it is sent to Pinecone."""


@dataclass(frozen=True, slots=True)
class AllOf:
    """Passes what every part passes."""

    parts: tuple[Condition, ...]

    def passes(self, fields: Fields) -> bool:
        return all(part.passes(fields) for part in self.parts)

    def spelled_out(self) -> dict[str, object]:
        return {"$and": [part.spelled_out() for part in self.parts]}


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Passes what at least one part passes."""

    parts: tuple[Condition, ...]

    def passes(self, fields: Fields) -> bool:
        return any(part.passes(fields) for part in self.parts)

    def spelled_out(self) -> dict[str, object]:
        return {"$or": [part.spelled_out() for part in self.parts]}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Compares one field with an operand of the type that its operator takes."""

    field: str
    operator: str
    operand: object

    def passes(self, fields: Fields) -> bool:
        present, value = self.field in fields, fields.get(self.field)
        match self.operator:
            case "$exists":
                return present is self.operand
            case "$ne" | "$nin":
                return not (present and self._equals(value))
            case "$eq" | "$in":
                return present and self._equals(value)
        compare = _ORDERED[self.operator]
        return _is_number(value) and compare(float(value), float(self.operand))  # type: ignore[arg-type]

    def spelled_out(self) -> dict[str, object]:
        plain: dict[str, object] = {self.field: {self.operator: self.operand}}
        if self.operator in ("$ne", "$nin"):
            return {"$or": [plain, {self.field: {"$exists": False}}]}
        return plain

    def _equals(self, value: object) -> bool:
        wanted = self.operand if isinstance(self.operand, list) else [self.operand]
        found = value if isinstance(value, list) else [value]
        return any(_same(one, other) for one in found for other in wanted)


def parse_filter(filter: Filter | None) -> Condition | None:
    """The condition that a filter states; None where it states none.

    Args:
        filter: ``{field: value}`` or ``{field: {operator: operand}}``, all of which must hold, and
            ``{"$and": [...]}`` and ``{"$or": [...]}`` of such.

    Raises:
        InvalidArgument: an operator, an operand or the shape is none of a filter's.
    """
    if filter is None or filter == {}:
        return None
    return _parse(filter)


def fields_of(filter: Filter) -> Iterator[str]:
    """The metadata fields that a filter, which has been checked, names."""
    for key, value in filter.items():
        if key in ("$and", "$or") and isinstance(value, Sequence):
            for part in value:
                yield from fields_of(part)
        else:
            yield key


def filterable(passage: Passage) -> dict[str, MetadataValue]:
    """The fields of a passage that filters see: its metadata, and its source."""
    source: dict[str, MetadataValue] = {SOURCE: passage.source} if passage.source else {}
    return {**source, **passage.metadata}


def _parse(filter: object, depth: int = 0) -> Condition:
    if depth > DEEPEST:
        raise InvalidArgument("filter", f"{depth} deep", f"nest $and and $or at most {DEEPEST} deep")
    if not isinstance(filter, Mapping) or not filter:
        raise InvalidArgument("filter", filter, 'give a dict such as {"year": {"$gte": 2020}}')
    parts: list[Condition] = []
    for key, value in filter.items():
        if key in ("$and", "$or"):
            if isinstance(value, str) or not isinstance(value, Sequence) or not value:
                raise InvalidArgument(f"filter[{key!r}]", value, "give a list of one or more filters")
            inner = tuple(_parse(part, depth + 1) for part in value)
            parts.append(AllOf(inner) if key == "$and" else AnyOf(inner))
        else:
            parts += _comparisons(key, value)
    return parts[0] if len(parts) == 1 else AllOf(tuple(parts))


def _comparisons(field: object, value: object) -> list[Condition]:
    if not isinstance(field, str) or not field or field.startswith("$"):
        raise InvalidArgument("filter", field, "name a metadata field, $and or $or here")
    if not is_utf8(field):
        raise InvalidArgument("filter", field, "it holds half a surrogate pair: no metadata has such a field")
    if field.startswith(RESERVED):
        raise InvalidArgument("filter", field, f"fields that begin with {RESERVED} are the index's own")
    conditions = value if isinstance(value, Mapping) else {"$eq": value}
    if not conditions:
        raise InvalidArgument(f"filter[{field!r}]", value, f"give one of {', '.join(_OPERATORS)}")
    return [Comparison(field, name, _operand(field, name, item)) for name, item in conditions.items()]


def _operand(field: str, name: object, operand: object) -> object:
    """The operand as it is kept, checked."""
    where = f"filter[{field!r}][{name!r}]"
    if name not in _OPERATORS:
        raise InvalidArgument(f"filter[{field!r}]", name, f"use one of {', '.join(_OPERATORS)}")
    if name == "$exists":
        if not isinstance(operand, bool):
            raise InvalidArgument(where, operand, "give True or False")
    elif name in ("$in", "$nin"):
        if isinstance(operand, str | bytes | bytearray) or not isinstance(operand, Sequence):
            raise InvalidArgument(where, operand, "give a list")
        if not 0 < len(operand) <= MOST_VALUES:
            raise InvalidArgument(where, operand, f"give 1 to {MOST_VALUES} values")
        for item in operand:
            if not (_is_text(item) or _is_number(item)):
                raise InvalidArgument(where, item, "give strings and finite numbers; for a bool use $eq")
        return [plain(item) for item in operand]
    elif name in _ORDERED:
        if not _is_number(operand):
            raise InvalidArgument(where, operand, "give a finite number")
    elif not (isinstance(operand, bool) or _is_text(operand) or _is_number(operand)):
        raise InvalidArgument(where, operand, "give a string, a bool or a finite number")
    return plain(operand)


def plain(value: object) -> object:
    """The value without a type of its own, such as NumPy's float64, which JSON has no word for."""
    return float(value) if isinstance(value, float) else value


def _is_text(value: object) -> bool:
    return isinstance(value, str) and is_utf8(value)


def _is_number(value: object) -> bool:
    """Whether it is a finite number that a 64-bit float holds as it is."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) if isinstance(value, float) else abs(value) <= MOST_WHOLE


def _same(value: object, operand: object) -> bool:
    if isinstance(value, bool) or isinstance(operand, bool):
        return value is operand
    return value == operand
