"""An embeddings endpoint on loopback, for the real OpenAI clients to talk to."""

from __future__ import annotations

import base64
import json
import struct
from http.server import BaseHTTPRequestHandler
from typing import Any

from hashed_words import HashedWords
from loopback import Loopback


class EmbeddingsServer(Loopback):
    """Serves ``/v1/embeddings`` while its context is entered: hashed words, twice as long as one.

    Attributes:
        requests: the JSON of every request, in order of arrival.
    """

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        super().__init__()

    @property
    def url(self) -> str:
        """The base URL that a client is given."""
        return f"{super().url}/v1"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # head and body in one packet: two would wait for each other

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.requests.append(request)
                body = json.dumps(_reply(request)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments: object) -> None:
                """Tests print nothing."""

        return Handler


def _reply(request: dict[str, Any]) -> dict[str, Any]:
    texts = request["input"] if isinstance(request["input"], list) else [request["input"]]
    vectors = HashedWords(request.get("dimensions", 3072)).encode_documents(texts)
    data = []
    for index, vector in enumerate(vectors):
        twice: list[float] | str = [2 * value for value in vector]
        if request.get("encoding_format") == "base64":
            twice = base64.b64encode(struct.pack(f"<{len(vector)}f", *twice)).decode()
        data.append({"object": "embedding", "index": index, "embedding": twice})
    usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
    return {"object": "list", "model": request["model"], "data": data, "usage": usage}
