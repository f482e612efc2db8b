"""What a file of each kind holds, as texts that no chunk may cross."""

from __future__ import annotations

import codecs
import io
import itertools
import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import BinaryIO, TypeGuard

from lara_plugins.arguments import is_utf8
from lara_plugins.errors import IngestError, MissingExtra
from lara_plugins.ingestion.cleaning import Removed, clean, without_repeated_lines
from lara_plugins.passages import MetadataValue
from lara_plugins.retrieval.filters import RESERVED

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),  # first, because it begins with UTF-16's
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""What a text begins with that is in one of these encodings."""


RECORDS = ".jsonl"


@dataclass(frozen=True, slots=True)
class Part:
    """A text that stands on its own in its file: all of it, a page or a record.

    Args:
        text: what it says.
        heading: what stands above it.
        metadata: what else the file says about it.
        record: whether it is one passage as it stands; else it is split where it is long.
        id: the identity that the file itself gives to a record; "" where it gives none.
        delimiter: what stands between the values of a row, where it is a table; else "".
    """

    text: str
    heading: str = ""
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict)
    record: bool = False
    id: str = ""
    delimiter: str = ""


@dataclass(slots=True)
class Document:
    """The parts of a file, and what of it was left out.

    Attributes:
        parts: one after the other; records are read only as they are asked for.
        problems: what could not be read, each with its reason; of records, so far.
        removed: the page headers and footers that are in no part.
    """

    parts: Iterable[Part]
    problems: list[str] = field(default_factory=list)
    removed: tuple[Removed, ...] = ()


def read_document(name: str, file: BinaryIO) -> Document:
    """The text of a file, by the ending of its name.

    ====== ==================================================================================
    .txt   the text; also .text
    .md    the text, split at its headings; also .markdown
    .csv   the rows, split in groups under the first row, with the file's name as heading
    .jsonl a passage a line, as in the BEIR layout: an object with ``text``, and, where given,
           ``title`` (the heading) and ``_id``, a string or a whole number, which stands in the
           metadata as a string so that relevance judgements find it; other fields that are
           strings, numbers, true or false, or lists of strings become metadata
    .pdf   a page at a time, its number in the metadata (``page``, from 1), without the lines
           that its pages begin or end with
    ====== ==================================================================================

    A .jsonl file is read line by line, any other one is held whole.

    Args:
        name: its name or URL.
        file: its content; it must stay open while records are read.

    Raises:
        IngestError: there is no text to be had from it, and why.
        MissingExtra: it is a PDF and pypdf is not installed.
    """
    path = PurePosixPath(name)
    read = READERS.get(path.suffix.lower())
    if read is None:
        raise IngestError(f"is not read: only {', '.join(sorted(READERS))} files are")
    return read(path, file)


def left_out(name: str, file: BinaryIO) -> list[str]:
    """What of a file that has been read before is in none of its parts: the faulty lines of a .jsonl file.

    Any other file is read whole or not at all, and so is not read here.
    """
    path = PurePosixPath(name)
    if path.suffix.lower() != RECORDS:
        return []
    document = _read_jsonl(path, file)
    for _ in document.parts:
        pass
    return document.problems


def _read_text(path: PurePosixPath, file: BinaryIO) -> Document:
    text = _decoded(_whole(file))
    return Document([Part(text)], removed=clean(text).removed)  # splitting it cleans it


def _read_csv(path: PurePosixPath, file: BinaryIO) -> Document:
    text = _decoded(_whole(file))
    first, _, rows = text.partition("\n")
    if not rows.strip():
        raise IngestError("holds no text")
    heading = path.stem.replace("-", " ").replace("_", " ").strip()
    return Document([Part(text, heading, delimiter=max(",;\t|", key=first.count))])


def _read_jsonl(path: PurePosixPath, file: BinaryIO) -> Document:
    document = Document([])
    document.parts = _records(_lines(file), document.problems)
    return document


def _records(lines: Iterable[bytes], problems: list[str]) -> Iterator[Part]:
    """The records of a .jsonl file; those without an identity get their line's number."""
    seen: set[str] = set()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            part = _record(json.loads(line.decode()), f"line-{number}")
        except UnicodeDecodeError as error:
            problems.append(f"line {number}: is no UTF-8 text (byte {error.start})")
        except json.JSONDecodeError:
            problems.append(f"line {number}: is no JSON")
        except (ValueError, RecursionError):  # Python's own limits, against texts made to exhaust it
            problems.append(f"line {number}: a number is too long or the nesting too deep")
        except IngestError as error:
            problems.append(f"line {number}: {error}")
        else:
            if part.id in seen:
                problems.append(f"line {number}: _id {part.id!r} stands in an earlier line")
                continue
            seen.add(part.id)
            yield part


def _lines(file: BinaryIO) -> Iterable[bytes]:
    """The lines of a text in UTF-8; one at a time where the file is in it."""
    first = file.readline()
    if any(first.startswith(mark) for mark, _ in _MARKS):
        return _decoded(first + file.read()).encode().split(b"\n")
    if b"\0" in first:
        raise IngestError("is binary, not text")
    return itertools.chain([first.removeprefix(codecs.BOM_UTF8)], file)


def _record(fields: object, place: str) -> Part:
    """One line of a .jsonl file; ``place`` is its identity where it gives none."""
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
    metadata = storable(given)
    if id_ := str(identity).strip():
        metadata["_id"] = id_
    try:
        json.dumps([text, title, metadata], ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise IngestError("holds half of a surrogate pair") from error
    return Part(text, title.strip(), metadata, record=True, id=id_ or place)


def storable(metadata: Mapping[str, object], without: Collection[str] = ()) -> dict[str, MetadataValue]:
    """What of some metadata every index can store: UTF-8 strings, numbers, true or false, lists of strings.

    Keys that begin with "lara_" or "$" are left out: indexes and their filters have them for themselves.

    Args:
        metadata: what a file or a loader says.
        without: keys that are left out.
    """
    return {
        name: value
        for name, value in metadata.items()
        if isinstance(name, str)
        and is_utf8(name)
        and name not in without
        and not name.startswith((RESERVED, "$"))
        and _is_storable(value)
    }


def _is_storable(value: object) -> TypeGuard[MetadataValue]:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, list):
        return all(isinstance(item, str) and is_utf8(item) for item in value)
    if isinstance(value, str):
        return is_utf8(value)
    return isinstance(value, bool) or (isinstance(value, int) and abs(value) < 2**63)


def _read_pdf(path: PurePosixPath, file: BinaryIO) -> Document:
    data = _whole(file)
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
    # A broken font yields lone surrogates.
    pages, removed = without_repeated_lines([page.encode("utf-8", "replace").decode() for page in pages])
    if not any(page.strip() for page in pages):
        raise IngestError("is a PDF without text: scanned pages need text recognition first")
    parts = [Part(text, metadata={"page": number}) for number, text in enumerate(pages, 1) if text.strip()]
    return Document(parts, removed=removed)


def _whole(file: BinaryIO) -> bytes:
    data = file.read()
    if not data.strip():
        raise IngestError("is empty")
    return data


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


READERS: Mapping[str, Callable[[PurePosixPath, BinaryIO], Document]] = {
    ".txt": _read_text,
    ".text": _read_text,
    ".md": _read_text,
    ".markdown": _read_text,
    ".csv": _read_csv,
    RECORDS: _read_jsonl,
    ".pdf": _read_pdf,
}
"""The kinds of file that are read, by the ending of their names."""
