"""What a file of each kind holds, as texts that no chunk may cross."""

from __future__ import annotations

import codecs
import csv
import io
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lara_plugins.errors import IngestError, MissingExtra
from lara_plugins.passages import MetadataValue

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),  # first, because it begins with UTF-16's
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""What a text begins with that is in one of these encodings."""


@dataclass(frozen=True, slots=True)
class Part:
    """A text that stands on its own in its file: all of it, a page, a row or a record.

    Args:
        text: what it says.
        heading: what stands above it.
        metadata: what else the file says about it.
        record: whether it is one passage as it stands; else it is split where it is long.
        id: the identity that the file itself gives to a record; "" where it gives none.
    """

    text: str
    heading: str = ""
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict)
    record: bool = False
    id: str = ""


@dataclass(slots=True)
class Document:
    """The parts of a file, and what of it could not be read, each with its reason."""

    parts: list[Part] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def read_document(path: Path, data: bytes) -> Document:
    """The text of a file, by the ending of its name.

    ====== ==================================================================================
    .txt   the text; also .text
    .md    the text, split at its headings; also .markdown
    .csv   a row a passage, as "column: value" lines under the file's name; the first row
           names the columns
    .jsonl a passage a line, as in the BEIR layout: an object with ``text``, and, where given,
           ``title`` (the heading) and ``_id``, a string or a whole number, which stands in the
           metadata as a string so that relevance judgements find it; other fields that are
           strings, numbers or true or false become metadata
    .pdf   a page at a time, its number in the metadata (``page``, from 1)
    ====== ==================================================================================

    Args:
        path: its name; the file is not opened.
        data: its content.

    Raises:
        IngestError: there is no text to be had from it, and why.
        MissingExtra: it is a PDF and pypdf is not installed.
    """
    read = READERS.get(path.suffix.lower())
    if read is None:
        raise IngestError(f"is not read: only {', '.join(sorted(READERS))} files are")
    if not data.strip():
        raise IngestError("is empty")
    document = read(path, data)
    document.parts = [part for part in document.parts if part.text.strip()]
    if not document.parts and not document.problems:
        raise IngestError("holds no text")
    return document


def _read_text(path: Path, data: bytes) -> Document:
    return Document([Part(_decoded(data))])


def _read_csv(path: Path, data: bytes) -> Document:
    text = _decoded(data)
    delimiter = max(",;\t|", key=text.partition("\n")[0].count)
    try:
        names, *rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    except (csv.Error, ValueError) as error:
        raise IngestError(f"is no CSV: {error}") from error
    heading = path.stem.replace("-", " ").replace("_", " ").strip()
    document = Document()
    for number, row in enumerate(rows, start=2):
        if len(row) > len(names):
            document.problems.append(f"row {number}: {len(row)} values for {len(names)} columns")
            continue
        cells = [
            f"{name.strip()}: {value.strip()}"
            for name, value in zip(names, row, strict=False)
            if value.strip()
        ]
        document.parts.append(Part("\n".join(cells), heading, {"row": number}, record=True))
    return document


def _read_jsonl(path: Path, data: bytes) -> Document:
    document = Document()
    seen: set[str] = set()
    for number, line in enumerate(_decoded(data).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            part = _record(json.loads(line))
        except json.JSONDecodeError:
            document.problems.append(f"line {number}: is no JSON")
        except (ValueError, RecursionError):  # Python's own limits, against texts made to exhaust it
            document.problems.append(f"line {number}: a number is too long or the nesting too deep")
        except IngestError as error:
            document.problems.append(f"line {number}: {error}")
        else:
            if part.id in seen:
                document.problems.append(f"line {number}: _id {part.id!r} stands in an earlier line")
                continue
            if part.id:
                seen.add(part.id)
            document.parts.append(part)
    return document


def _record(fields: object) -> Part:
    """One line of a .jsonl file."""
    if not isinstance(fields, dict):
        raise IngestError("is no JSON object")
    given = {name: value for name, value in fields.items() if value is not None}
    text, title, identity = given.pop("text", ""), given.pop("title", ""), given.pop("_id", "")
    if not isinstance(text, str) or not text.strip():
        raise IngestError('has no "text"')
    if not isinstance(title, str):
        raise IngestError('"title" must be a string')
    if not isinstance(identity, str | int) or isinstance(identity, bool):
        raise IngestError('"_id" must be a string or a whole number')
    metadata = {name: value for name, value in given.items() if _plain(value)}
    if id_ := str(identity).strip():
        metadata["_id"] = id_
    try:
        json.dumps([text, title, metadata], ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise IngestError("holds half of a surrogate pair") from error
    return Part(text, title.strip(), metadata, record=True, id=id_)


def _plain(value: object) -> bool:
    """Whether every index can store it."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, str | bool) or (isinstance(value, int) and abs(value) < 2**63)


def _read_pdf(path: Path, data: bytes) -> Document:
    try:
        import pypdf  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtra("pypdf", "lara-plugins[cli]") from error
    try:
        pages = [page.extract_text() for page in pypdf.PdfReader(io.BytesIO(data)).pages]
    # Others' code on bytes of any origin: what it raises differs with the damage, and no list of it
    # is complete. Nothing is hidden: the file stands in the report with this reason.
    except Exception as error:
        raise IngestError(f"is a PDF that cannot be read: {str(error) or type(error).__name__}") from error
    document = Document()
    for number, text in enumerate(pages, start=1):
        printable = text.encode("utf-8", "replace").decode()  # a broken font yields lone surrogates
        document.parts.append(Part(printable, metadata={"page": number}))
    if not any(part.text.strip() for part in document.parts):
        raise IngestError("is a PDF without text: scanned pages need text recognition first")
    return document


def _decoded(data: bytes) -> str:
    """The text with line feeds as its line ends; UTF-8, or UTF-16 or UTF-32 that says so."""
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8")
    if encoding == "utf-8" and b"\0" in data:
        raise IngestError("is binary, not text")
    try:
        text = data.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise IngestError(f"is no {encoding} text (byte {error.start}): save it as UTF-8") from error
    if "\0" in text:
        raise IngestError("is binary, not text")
    return text.replace("\r\n", "\n").replace("\r", "\n")


READERS: Mapping[str, Callable[[Path, bytes], Document]] = {
    ".txt": _read_text,
    ".text": _read_text,
    ".md": _read_text,
    ".markdown": _read_text,
    ".csv": _read_csv,
    ".jsonl": _read_jsonl,
    ".pdf": _read_pdf,
}
"""The kinds of file that are read, by the ending of their names."""
