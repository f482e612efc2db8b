"""From files to passages in an index."""

from lara_plugins.ingestion.chunking import AdaptiveChunker, Chunk
from lara_plugins.ingestion.ingest import (
    IngestReport,
    Progress,
    SourceIndex,
    existing_path,
    ingest,
    passage_id,
)
from lara_plugins.ingestion.readers import READERS, Document, Part, read_document

__all__ = [
    "READERS",
    "AdaptiveChunker",
    "Chunk",
    "Document",
    "IngestReport",
    "Part",
    "Progress",
    "SourceIndex",
    "existing_path",
    "ingest",
    "passage_id",
    "read_document",
]
