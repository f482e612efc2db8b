"""A stand-in for Pinecone's rerank call on loopback, for the real SDK to talk to.

It answers ``POST /rerank`` as the published specification of the inference service says (2025-04
to 2026-04; 2026-07, which SDK 10 speaks, is taken to be the same), and holds to the documented
limits of bge-reranker-v2-m3: 100 documents a request, 256 tokens of a query and 1,024 of a pair,
where longer ones are refused unless ``truncate`` is END. A token is taken to be a word. A
document's score is the share of the query's words that it holds.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

from loopback import Loopback

Json = dict[str, Any]

MOST_DOCUMENTS = 100
MOST_QUERY_TOKENS = 256
MOST_PAIR_TOKENS = 1024


class RerankServer(Loopback):
    """Serves ``/rerank`` while its context is entered.

    Args:
        change: a reply's JSON as it is sent, where a test wants another than the right one.

    Attributes:
        requests: the JSON of every request, in order of arrival.
    """

    def __init__(self, change: Callable[[Json], Json] = lambda reply: reply) -> None:
        self.change = change
        self.requests: list[Json] = []
        super().__init__()

    def reply(self, path: str, request: Json) -> tuple[int, Json]:
        """Status and JSON for a request."""
        if path != "/rerank":
            return refused(404, "NOT_FOUND", f"no {path} here")
        documents = [document["text"] for document in request["documents"]]
        query = request["query"]
        if len(documents) > MOST_DOCUMENTS:
            return refused(400, "INVALID_ARGUMENT", f"{len(documents)} documents exceed {MOST_DOCUMENTS}")
        asked = len(query.split())
        longest = asked + max(len(text.split()) for text in documents)
        cut = request.get("parameters", {}).get("truncate") == "END"
        if not cut and (asked > MOST_QUERY_TOKENS or longest > MOST_PAIR_TOKENS):
            return refused(400, "INVALID_ARGUMENT", f"a pair of {longest} tokens is too long")
        ranked = sorted(
            ({"index": i, "score": word_overlap(query, text)} for i, text in enumerate(documents)),
            key=lambda document: -document["score"],
        )
        data = ranked[: request.get("top_n", len(ranked))]
        if request.get("return_documents", True):
            data = [document | {"document": request["documents"][document["index"]]} for document in data]
        reply = {"model": request["model"], "data": data, "usage": {"rerank_units": 1}}
        return 200, self.change(reply)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.requests.append(request)
                status, reply = server.reply(self.path, request)
                body = json.dumps(reply).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments: object) -> None:
                """Tests print nothing."""

        return Handler


def word_overlap(query: str, text: str) -> float:
    """The share of the query's words that the text holds."""
    words = set(query.split())
    return len(words & set(text.split())) / len(words)


def refused(status: int, code: str, message: str) -> tuple[int, Json]:
    """An error of the service."""
    return status, {"status": status, "error": {"code": code, "message": message}}
