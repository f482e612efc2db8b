"""Between LlamaIndex's nodes and LARA's passages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, TextNode

from lara_plugins import InvalidArgument, Passage
from lara_plugins.ingestion import source_of, storable
from lara_plugins.retrieval import Match

SOURCE = "source"
HEADING = "heading"


def scored_passage(node: NodeWithScore) -> Passage:
    """The node as a cross-encoder sees it: the content that is meant to be embedded."""
    return Passage(node.node.node_id, node.node.get_content(MetadataMode.EMBED))


def shown_passage(node: NodeWithScore) -> Passage:
    """The node as an LLM sees it: its text, under the metadata that is meant for LLMs.

    Spans and quotes refer to the text alone.
    """
    return Passage(
        node.node.node_id,
        node.node.get_content(MetadataMode.NONE),
        heading=node.node.get_metadata_str(MetadataMode.LLM),
        source=source_of(node.node.metadata),
    )


def node_from_match(match: Match) -> NodeWithScore:
    """A match of a hybrid index as a node with the same id, text and metadata.

    The heading is embedded, scored and shown; the source is shown; other metadata is kept and
    neither scored nor shown.
    """
    passage = match.passage
    metadata: dict[str, object] = dict(passage.metadata)
    kept = list(metadata)
    if passage.source:
        metadata[SOURCE] = passage.source
        kept.append(SOURCE)
    if passage.heading:
        metadata[HEADING] = passage.heading
        kept = [key for key in kept if key != HEADING]
    node = TextNode(
        id_=passage.id,
        text=passage.text,
        metadata=metadata,
        metadata_template="{value}",
        excluded_embed_metadata_keys=kept,
        excluded_llm_metadata_keys=kept,
    )
    return NodeWithScore(node=node, score=match.score)


def passages_of(nodes: Iterable[BaseNode]) -> list[Passage]:
    """Nodes as passages that a hybrid index takes: ``index.upsert(passages_of(nodes))``.

    The heading is embedded and read with the text; other metadata is kept where an index can
    store it: strings, numbers, true or false, and lists of strings.
    """
    return [
        Passage(
            id=node.node_id,
            text=node.get_content(MetadataMode.NONE),
            heading=str(node.metadata.get(HEADING) or ""),
            source=source_of(node.metadata),
            metadata=storable(node.metadata, without=(HEADING, SOURCE)),
        )
        for node in nodes
    ]


def originals(passages: Sequence[Passage], known: Mapping[str, object]) -> list[NodeWithScore]:
    """The nodes behind some passages, as far as they are known."""
    nodes = (known.get(passage.id) for passage in passages)
    return [node for node in nodes if isinstance(node, NodeWithScore)]


def checked_query(query: str | None) -> str:
    """The question, or InvalidArgument where the caller gave none."""
    if query is None:
        raise InvalidArgument("query_bundle", None, "give the question: query_str=... or query_bundle=...")
    return query
