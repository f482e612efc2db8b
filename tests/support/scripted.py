"""An LLM that replies from a list, its replies, and passages for it to read."""

from __future__ import annotations

import json

from lara_plugins import Ask, Passage, Reply


def passages(count: int) -> list[Passage]:
    return [
        Passage(f"p{n}", f"Fact {n} is written here. It stands in passage {n}.") for n in range(1, count + 1)
    ]


def step(changed: bool = True, answer: str = "", complete: bool = False, *quotes: tuple[int, str]) -> str:
    evidence = [{"passage": number, "quote": quote} for number, quote in quotes]
    return json.dumps({"changed": changed, "answer": answer, "complete": complete, "evidence": evidence})


def found(value: str, *quotes: tuple[int, str], complete: bool = True, confidence: float = 0.9) -> str:
    evidence = [{"passage": number, "quote": quote} for number, quote in quotes]
    return json.dumps(
        {
            "answer_found": True,
            "complete_answer_found": complete,
            "value": value,
            "evidence": evidence,
            "confidence": confidence,
        }
    )


NOT_FOUND = json.dumps({"answer_found": False})


class Script:
    """Answers asks from a list and keeps them."""

    def __init__(self, *replies: str | Reply | None) -> None:
        self.replies, self.asks = list(replies), list[Ask]()

    def __call__(self, ask: Ask) -> Reply:
        self.asks.append(ask)
        reply = self.replies.pop(0)
        return reply if isinstance(reply, Reply) else Reply(reply)
