"""LlamaIndex's OpenAI LLMs under a deadline: the user's own object stays as it is."""

from __future__ import annotations

import pytest
from chat_server import Chat, ChatServer
from llama_index.core.llms import ChatMessage
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index_application import llama_index_client
from llama_index_lara import RefineInThrees
from openai_replies import ANSWER, SOON, answering, in_turn
from towers import LOOKUP, PASSAGES

from lara_plugins import QueryClock

NODES = [NodeWithScore(node=TextNode(id_=passage.id, text=passage.text)) for passage in PASSAGES[:3]]


@pytest.mark.parametrize("reuse", [True, False], ids=["one client", "a client a call"])
@pytest.mark.parametrize("used", [True, False], ids=["used before", "new"])
async def test_the_users_llm_stays_as_it_is(reuse: bool, used: bool) -> None:
    refused = Chat(status=503, headers=SOON)
    replies = in_turn(*[answering] * used, refused, answering, refused, answering, answering)
    with ChatServer(replies) as server:
        llm = llama_index_client(server, tools=False, reuse_client=reuse, max_retries=3)
        if used:
            llm.chat([ChatMessage("Hello.")])
        before = llm.to_dict()
        refine = RefineInThrees(llm)
        with QueryClock(60.0):
            assert str(refine.synthesize(LOOKUP, NODES)) == ANSWER
            assert str(await refine.asynthesize(LOOKUP, NODES)) == ANSWER
        assert llm.to_dict() == before
        llm.chat([ChatMessage("Hello.")])
        assert len(server.requests) == 5 + used
