from __future__ import annotations

import copy

from chat_server import Chat, ChatServer
from llama_index.core.llms import ChatMessage
from llama_index_application import llama_index_client
from llama_index_lara import observe_latency


async def test_a_completion_made_of_a_chat_is_one_call() -> None:
    with ChatServer(lambda request: Chat(text="It is 330 metres tall.")) as server:
        llm = llama_index_client(server, tools=False)
        latency, copied = observe_latency(llm), copy.deepcopy(llm)
        llm.complete("Hello, how tall is it?")
        await copied.acomplete("Hello, how tall is it?")
        assert latency.learned.observed == 2 == len(server.requests)


def test_a_stream_that_is_dropped_unread_teaches_nothing() -> None:
    with ChatServer(lambda request: Chat(text="It is 330 metres tall.")) as server:
        llm = llama_index_client(server, tools=False)
        latency = observe_latency(llm)
        stream = llm.stream_chat([ChatMessage(role="user", content="Hello, how tall is it?")])
        next(iter(stream))
        del stream
        assert latency.learned.observed == 0
