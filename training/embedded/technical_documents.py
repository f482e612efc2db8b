"""The technical documents as a collection: passages are chunks, and those with a quote are relevant."""

from __future__ import annotations

import json
from pathlib import Path

from questions import Collection, Judged

CHUNK = 1000
"""Most characters of a chunk, where lines allow."""


def load_technical_documents(folder: Path) -> Collection:
    """Lines packed into chunks; a chunk is relevant that holds the beginning of a quoted passage."""
    chunks: list[tuple[str, str]] = []
    for path in sorted((folder / "docs").iterdir()):
        chunk = ""
        for line in path.read_text("utf-8").splitlines(keepends=True):
            if chunk and len(chunk) + len(line) > CHUNK:
                chunks.append((path.name, chunk))
                chunk = ""
            chunk += line
        chunks.append((path.name, chunk))
    questions = []
    for line in (folder / "queries.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        found = {
            index
            for index, (name, chunk) in enumerate(chunks)
            for quote in row["evidence"]
            if quote["doc"] == name and quote["quote"].splitlines()[0][:60] in chunk
        }
        questions.append(Judged(row["text"], "report", frozenset(found), None, ()))
    names, passages = zip(*chunks, strict=True)
    return Collection("techdocs", names, passages, tuple(questions))
