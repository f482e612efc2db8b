"""The extractive reader in the place of a language model: same asks, same typed replies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence

from lara_plugins.answering.contract import AnswerReply, AnswerWithEvidence, ReplyType, StepReply
from lara_plugins.answering.drivers import Said
from lara_plugins.answering.extractive import ExtractiveReader
from lara_plugins.answering.loop import Ask, Numbered
from lara_plugins.answering.prompts import read_prompt
from lara_plugins.answering.streaming import pieces
from lara_plugins.passages import Passage, Span
from lara_plugins.question import SINGLE_VALUES, QuestionShape, parse_question


class ExtractiveModel:
    """A ``LanguageModel`` that answers with the sentences of the passages themselves.

    It needs no account and no download, never makes anything up, and cannot reason: it finds
    what is written, as it is written.

    Args:
        reader: chooses the sentences.
    """

    def __init__(self, reader: ExtractiveReader) -> None:
        self.reader = reader

    @property
    def callee(self) -> object:
        return self.reader

    def ask(self, ask: Ask) -> Said:
        return Said(self._reply(ask.question, ask.passages, ask.previous.value, ask.reply).model_dump_json())

    async def aask(self, ask: Ask) -> Said:
        return await asyncio.to_thread(self.ask, ask)

    def stream(self, ask: Ask) -> Iterator[Said]:
        yield from (Said(piece) for piece in pieces(str(self.ask(ask).raw)))

    async def astream(self, ask: Ask) -> AsyncIterator[Said]:
        for piece in pieces(str((await self.aask(ask)).raw)):
            yield Said(piece)

    def reply_to_prompt(self, prompt: str) -> str | None:
        """The reply to an ask that a framework has rendered; None where the prompt is no ask."""
        content = read_prompt(prompt)
        if content is None:
            return None
        reply = self._reply(content.question, content.passages, content.previous, content.reply)
        return reply.model_dump_json()

    def reply_to_context(self, question: str, context: str) -> str:
        """The reply to a framework's own prompt: texts with empty lines between them, and a question."""
        texts = [text for text in context.split("\n\n") if text.strip()]
        answer = self.read(question, [Passage(str(n), text) for n, text in enumerate(texts)])
        return answer.value if answer.answer_found else "The passages do not answer the question."

    def read(self, question: str, passages: Sequence[Passage]) -> AnswerWithEvidence:
        """The answer that the passages hold, numbered from 1."""
        return self.reader.read(question, passages, parse_question(question))

    def _reply(
        self, question: str, shown: Sequence[Numbered], previous: str, reply_type: ReplyType
    ) -> StepReply | AnswerReply:
        shape = parse_question(question)
        passages = [item.passage for item in shown]
        numbers = [item.number for item in shown]
        found = self.reader.read(question, passages, shape, numbers=numbers)
        quotes = _quotes(found.evidence, shown)
        if reply_type is StepReply:
            return self._step(found, quotes, previous, shape)
        return AnswerReply.model_validate(
            {
                "answer_found": found.answer_found,
                "complete_answer_found": found.complete_answer_found,
                "value": found.value,
                "evidence": quotes,
                "confidence": found.confidence,
                "caveats": list(found.caveats),
            }
        )

    def _step(
        self,
        found: AnswerWithEvidence,
        quotes: list[dict[str, str | int]],
        previous: str,
        shape: QuestionShape,
    ) -> StepReply:
        # Windows come best first: a single value that an earlier one gave stands, a list grows.
        single = shape.answer_shape in SINGLE_VALUES and shape.decomposition == "single"
        if not found.answer_found or (previous and single):
            return StepReply(changed=False)
        answer = f"{previous}\n{found.value}" if previous else found.value
        return StepReply.model_validate(
            {"changed": True, "answer": answer, "complete": found.complete_answer_found, "evidence": quotes}
        )


def _quotes(evidence: Sequence[Span], shown: Sequence[Numbered]) -> list[dict[str, str | int]]:
    numbers = {item.passage.id: item.number for item in reversed(shown)}
    return [{"passage": numbers[span.passage_id], "quote": span.quote} for span in evidence]
