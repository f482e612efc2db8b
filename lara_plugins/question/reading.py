"""A question as the rules read it, with the way back to the text that was typed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from lara_plugins.question.lexicon import Lexicon
from lara_plugins.question.rules import ASK, fold, fold_character

READ_AT_EACH_END = 2_000
"""Of a longer text this many characters are read at its beginning and at its end.

An ask stands before or after what is pasted with it, and the cost stays bounded."""

_PIECE = re.compile(r"[^\W_]+(?:['’][^\W_]+)*|\s+|.", re.DOTALL)
_QUOTED = re.compile(r"[\"“„«][^\"“”„«»]{1,200}[\"”“»]|「[^」]{1,200}」|『[^』]{1,200}』")
_WHOLLY_QUOTED = 0.8
_SENTENCE_ENDS = frozenset("?？!！;；。।…")
_QUESTION_MARKS = frozenset("?？")
_LIKE_SPACE = frozenset('"“”„«»「」『』¶¿¡*#`()[]|_')
_ABBREVIATION = re.compile(r"\w|mr|mrs|ms|dr|prof|st|no|nr|art|vs|cf|inc|ltd|approx|max|min|etc|bzw|usw|sra?")
_MOST_OPENINGS = 8

Placed = tuple[str, int, int]
"""A character that is read, and where in the text it comes from: start and end."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A question, ready for the rules.

    Args:
        text: what the rules search: one sentence a line, ``¶`` where an ask begins.
        places: for each character of ``text`` its start and end in the question.
    """

    text: str
    places: tuple[tuple[int, int], ...] = field(repr=False)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where ``text[start:end]`` stands in the question."""
        places = [place for place in self.places[start:end] if place[0] < place[1]]
        return (min(place[0] for place in places), max(place[1] for place in places)) if places else (0, 0)


def read(question: str, lexicon: Lexicon) -> Reading:
    """Fold, mend and split ``question``, and mark where its asks begin."""
    sentences = list(_sentences(question, lexicon.substitutes))
    marks = [_marks("".join(character for character, _, _ in sentence), lexicon) for sentence in sentences]
    if sentences and not any(marks):
        marks = [[_ask_start(sentence, lexicon)] for sentence in sentences[:1]] + marks[1:]
    characters: list[str] = []
    places: list[tuple[int, int]] = []
    for sentence, starts in zip(sentences, marks, strict=True):
        for position, (character, start, end) in enumerate(sentence):
            if position in starts:
                characters.append(ASK)
                places.append((start, start))
            characters.append(character)
            places.append((start, end))
        characters.append("\n")
        places.append((sentence[-1][2], sentence[-1][2]))
    return Reading("".join(characters), tuple(places))


def _sentences(question: str, substitutes: Mapping[str, str]) -> Iterator[list[Placed]]:
    sentence: list[Placed] = []
    for piece, start, end, ends_sentence in _pieces(question, substitutes):
        if piece.isspace() and (not sentence or sentence[-1][0] == " "):
            continue
        if len(piece) == end - start:
            sentence.extend((character, start + i, start + i + 1) for i, character in enumerate(piece))
        else:
            sentence.extend((character, start, end) for character in piece)
        if ends_sentence:
            if any(character.isalnum() for character, _, _ in sentence):
                yield sentence
            sentence = []
    if any(character.isalnum() for character, _, _ in sentence):
        yield sentence


def _pieces(question: str, substitutes: Mapping[str, str]) -> Iterator[tuple[str, int, int, bool]]:
    """Each word or character as it is read, its place, and whether a sentence ends with it."""
    quotes = {match.start(): match.end() for match in _QUOTED.finditer(question)}
    if quotes and max(end - start for start, end in quotes.items()) > _WHOLLY_QUOTED * len(question.strip()):
        quotes = {}
    word, quoted_until = "", 0
    for begin, stop in _ranges(len(question)):
        for match in _PIECE.finditer(question, begin, stop):
            piece, start, end = match[0], match.start(), match.end()
            if start < quoted_until:
                continue
            if start in quotes:
                quoted_until = quotes[start]
                yield "quoted", start, quoted_until, False
            elif piece[0].isalnum():
                word = fold(piece).replace("’", "'")
                yield substitutes.get(word, word), start, end, False
            elif piece.isspace():
                yield " ", start, end, piece.count("\n") > 1
            elif piece in _SENTENCE_ENDS:
                yield ("?" if piece in _QUESTION_MARKS else " "), start, end, True
            elif piece == "." and question[end : end + 1].strip() == "":
                yield " ", start, end, not _ABBREVIATION.fullmatch(word)
            elif piece in _LIKE_SPACE:
                yield " ", start, end, False
            elif folded := fold_character(piece):
                yield folded, start, end, False
        yield " ", stop, stop, True


def _ranges(length: int) -> list[tuple[int, int]]:
    if length <= 2 * READ_AT_EACH_END:
        return [(0, length)]
    return [(0, READ_AT_EACH_END), (length - READ_AT_EACH_END, length)]


def _marks(sentence: str, lexicon: Lexicon) -> list[int]:
    """Where in a sentence asks begin."""
    begin, requested = _skip_openings(sentence, lexicon)
    marks = [begin] if requested or lexicon.openings.start.match(sentence, begin) else []
    marks += [match.end() for match in lexicon.openings.further.finditer(sentence, begin)]
    return [mark for mark in marks if mark < len(sentence)]


def _ask_start(sentence: list[Placed], lexicon: Lexicon) -> int:
    """Where the only ask of a text begins that looks like none: after its opening."""
    text = "".join(character for character, _, _ in sentence)
    begin, _ = _skip_openings(text, lexicon)
    return begin if begin < len(text) else 0


def _skip_openings(sentence: str, lexicon: Lexicon) -> tuple[int, bool]:
    """Where a sentence begins in earnest, and whether its opening announces an ask."""
    position, requested = len(sentence) - len(sentence.lstrip(" -,")), False
    openings = lexicon.openings
    for _ in range(_MOST_OPENINGS):
        if match := openings.opening.match(sentence, position):
            position = match.end()
        elif match := openings.request.match(sentence, position):
            position, requested = match.end(), True
        else:
            break
    return position, requested
