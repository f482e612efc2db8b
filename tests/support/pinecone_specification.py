"""Pinecone's published OpenAPI specification, and what of the stand-in's traffic breaks it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import yaml  # type: ignore[import-untyped]
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from pinecone_http import Json, Request

FOLDER = Path(os.environ.get("LARA_PINECONE_API", Path(__file__).parents[3] / "shared" / "pinecone-api"))

UNPUBLISHED = {
    "db_control": "2026-01.alpha",
    "db_data": "2026-04",
    "inference": "2026-04",
}
"""Whose specification stands for 2026-07, which SDK 10 speaks."""


def violations(request: Request, service: str) -> Iterator[str]:
    """What of a request and its answer the specification does not allow.

    Args:
        request: as the stand-in recorded it.
        service: ``db_control``, ``db_data`` or ``inference``.
    """
    version = UNPUBLISHED[service] if request.version == "2026-07" else request.version
    document = _document(service, version)
    operation = _operation(document, request)
    if operation is None:
        yield f"{version} knows no {request.method} {request.path}"
        return
    where = f"{version} {request.method} {request.path}"
    if content := operation.get("requestBody", {}).get("content"):
        yield from _broken(document, content["application/json"]["schema"], request.body, f"{where} request")
    known = {parameter["name"] for parameter in operation.get("parameters", [])}
    yield from (f"{where}: parameter {name}" for name in request.query if name not in known)
    if request.answered is None:
        return
    answers = operation["responses"]
    answer = answers.get(str(request.answered)) or answers.get(f"{request.answered // 100}XX")
    if answer is None:
        yield f"{where}: status {request.answered}"
    elif content := answer.get("content"):
        schema = content["application/json"]["schema"]
        yield from _broken(document, schema, request.answer, f"{where} {request.answered}")


def _broken(document: Json, schema: Json, value: object, where: str) -> Iterator[str]:
    validator = Draft202012Validator({**schema, "components": document["components"]})
    for error in validator.iter_errors(value):
        yield f"{where}: {error.json_path}: {error.message}"


def _operation(document: Json, request: Request) -> Json | None:
    for template, operations in document["paths"].items():
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), request.path):
            found: Json | None = operations.get(request.method.lower())
            if found is not None:
                return found
    return None


@lru_cache
def _document(service: str, version: str) -> Json:
    text = (FOLDER / f"{service}_{version}.oas.yaml").read_text(encoding="utf-8")
    document: Json = yaml.safe_load(text)
    for schema in document["components"]["schemas"].values():
        _close(schema)
    return document


def _close(schema: object) -> None:
    """Allow no property that the specification does not name, so that a misspelt one is found."""
    if isinstance(schema, dict):
        if "properties" in schema and "oneOf" not in schema:
            schema.setdefault("additionalProperties", False)
        for part in schema.values():
            _close(part)
    elif isinstance(schema, list):
        for part in schema:
            _close(part)
