"""From files to passages in an index."""

from lara_plugins.ingestion.chunking import AdaptiveChunker, Chunk
from lara_plugins.ingestion.cleaning import Cleaned, Removed, clean
from lara_plugins.ingestion.context import asituated, situated_by
from lara_plugins.ingestion.export import export_parquet
from lara_plugins.ingestion.ingest import IngestReport, Progress, ingest
from lara_plugins.ingestion.parquet import ParquetExport
from lara_plugins.ingestion.passages import (
    CONTEXT,
    END,
    START,
    Loaded,
    Situate,
    passage_id,
    passages_of_chunks,
    source_name,
    source_of,
)
from lara_plugins.ingestion.readers import READERS, Document, Part, read_document, storable
from lara_plugins.ingestion.sources import existing_path
from lara_plugins.ingestion.writing import EventualIndex, SourceIndex

__all__ = [
    "CONTEXT",
    "END",
    "READERS",
    "START",
    "AdaptiveChunker",
    "Chunk",
    "Cleaned",
    "Document",
    "EventualIndex",
    "IngestReport",
    "Loaded",
    "ParquetExport",
    "Part",
    "Progress",
    "Removed",
    "Situate",
    "SourceIndex",
    "asituated",
    "clean",
    "existing_path",
    "export_parquet",
    "ingest",
    "passage_id",
    "passages_of_chunks",
    "read_document",
    "situated_by",
    "source_name",
    "source_of",
    "storable",
]
