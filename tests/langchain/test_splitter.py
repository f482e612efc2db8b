"""AdaptiveTextSplitter with LangChain's own loaders and documents."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_lara import AdaptiveTextSplitter, passages_of
from langchain_text_splitters import TextSplitter

from lara_plugins import EmbeddedIndex, InvalidArgument, ingest

TEXT = "# Limits\n\n## Columns\n\n" + "A table has columns. " * 60 + "\n\n## Rows\n\nAnd rows.\n"


class TextFiles(BaseLoader):
    """A loader as LangChain's text loaders are: the path under ``source``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def lazy_load(self) -> Iterator[Document]:
        for path in sorted(self._folder.iterdir()):
            yield Document(page_content=path.read_text(), metadata={"source": str(path)})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "docs"
    made.mkdir()
    (made / "limits.md").write_text(TEXT)
    (made / "wal.md").write_text("# WAL\n\nReaders do not block writers.\n")
    return made


def test_loaders_and_ingest_fill_one_index_with_the_same_ids(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)  # loaders are given relative paths
    pieces = AdaptiveTextSplitter().split_documents(TextFiles(Path("docs")).load())
    with EmbeddedIndex(tmp_path / "by-lara") as expected, EmbeddedIndex(tmp_path / "by-chain") as index:
        ingest([folder], expected)
        index.upsert(passages_of(pieces))
        found, ours = (each.search("rows", limit=99, alpha=0.5) for each in (index, expected))
    read = {match.passage.id: (match.passage.content, match.passage.source) for match in found}
    assert read == {match.passage.id: (match.passage.content, match.passage.source) for match in ours}


def test_pieces_keep_the_documents_metadata_and_say_where_they_stand() -> None:
    document = Document(page_content=TEXT, metadata={"source": "limits", "tags": {"kept": ["as it is"]}})
    pieces = AdaptiveTextSplitter(target=500, overlap=100).split_documents([document])
    assert [piece.id.rpartition("#")[2] for piece in pieces if piece.id] == list(map(str, range(len(pieces))))
    for piece in pieces:
        assert piece.metadata["tags"] == {"kept": ["as it is"]}
        assert piece.metadata["tags"] is not document.metadata["tags"]
        assert piece.page_content in TEXT[piece.metadata["start"] : piece.metadata["end"]]
    assert {piece.metadata["heading"] for piece in pieces} == {"Limits > Columns", "Limits > Rows"}
    assert document.metadata == {"source": "limits", "tags": {"kept": ["as it is"]}}


@pytest.mark.parametrize("place", ["page", "page_label", "row", "seq_num"])
def test_a_part_of_a_file_has_its_ids_whatever_parts_are_beside_it(place: str) -> None:
    parts = [
        Document(page_content=TEXT * 2, metadata={"source": "a.pdf", place: number}) for number in range(3)
    ]
    splitter = AdaptiveTextSplitter(target=500)
    together = [piece.id for piece in splitter.split_documents(parts)]
    assert len(set(together)) == len(together) > 3
    assert [piece.id for part in parts for piece in splitter.split_documents([part])] == together


def test_two_parts_that_call_themselves_the_same_are_kept_apart() -> None:
    parts = [Document(page_content=text, metadata={"source": "a.pdf", "page_label": "i"}) for text in "ab"]
    pieces = AdaptiveTextSplitter().split_documents(parts)
    assert len({piece.id for piece in pieces}) == 2


def test_what_a_loader_cannot_decode_is_split_and_stored(tmp_path: Path) -> None:
    loaded = Document(page_content="half \ud83d of a pair", metadata={"source": "caf\udce9.pdf"})
    (piece,) = AdaptiveTextSplitter().split_documents([loaded])
    assert piece.page_content == "half ? of a pair"
    with EmbeddedIndex(tmp_path / "index") as index:
        index.upsert(passages_of([piece]))
        assert index.sources().keys() == {"caf?.pdf"}


def test_a_splitter_with_a_model_is_pickled() -> None:
    splitter = pickle.loads(pickle.dumps(AdaptiveTextSplitter(context=str.upper)))  # noqa: S301 - our own bytes
    documents = [Document(page_content="One.")]
    assert splitter.split_documents(documents)[0].metadata["context"].startswith("<DOCUMENT")


def test_bad_arguments_are_named() -> None:
    with pytest.raises(InvalidArgument, match=r"^document\.id=None: give each document an id"):
        passages_of([Document(page_content="One.")])
    with pytest.raises(InvalidArgument, match=r"^context=.*give a function"):
        AdaptiveTextSplitter(context=FakeListChatModel(responses=["x"]))  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match=r"^metadatas=1: give one for each of the 2 texts"):
        AdaptiveTextSplitter().create_documents(["One.", "Two."], [{}])


async def test_it_is_a_text_splitter() -> None:
    splitter = AdaptiveTextSplitter(target=500)
    assert isinstance(splitter, TextSplitter)
    (short,) = splitter.create_documents(["One.", " "])
    assert (short.page_content, splitter.split_text("One.")) == ("One.", ["One."])
    assert "source" not in short.metadata
    documents = [Document(page_content=TEXT)]
    assert await splitter.atransform_documents(documents) == splitter.transform_documents(documents)
    with pytest.raises(InvalidArgument, match="target"):
        AdaptiveTextSplitter(target=10)


def test_a_model_places_each_piece_in_its_document() -> None:
    model = FakeListChatModel(responses=["Of columns.", "Of columns too.", "Of rows."])
    splitter = AdaptiveTextSplitter(context=lambda prompt: str(model.invoke(prompt).content))
    pieces = splitter.split_documents([Document(page_content=TEXT)])
    assert [piece.metadata["heading"] for piece in pieces] == [
        "Limits > Columns\nOf columns.",
        "Limits > Columns\nOf columns too.",
        "Limits > Rows\nOf rows.",
    ]
    assert passages_of(pieces)[0].content.startswith("Limits > Columns\nOf columns.\nA table")


def test_metadata_that_no_index_can_store_is_left_out() -> None:
    metadata = {"\ud83d": "x", "title": "half \ud83d", "tags": ["\ud83d"], "nan": float("nan"), "page": 3}
    [passage] = passages_of([Document(page_content="One.", id="1", metadata=metadata)])
    assert passage.metadata == {"page": 3}
