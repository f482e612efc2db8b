"""A question as the rules read it, with the way back to the text that was typed."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from lara_plugins.question.lexicon import Lexicon
from lara_plugins.question.rules import ASK, fold, fold_character

READ_AT_EACH_END = 2_000
"""Of a longer text this many characters are read at its beginning and at its end.

An ask stands before or after what is pasted with it, and the cost stays bounded."""

_PIECE = re.compile(r"[^\W_]+(?:['’][^\W_]+)*|\s+|.", re.DOTALL)
_TOKEN = re.compile(r"\w+|[^\w\s]")
_QUOTED = re.compile(r"[\"“„«][^\"“”„«»]{1,200}[\"”“»]|「[^」]{1,200}」|『[^』]{1,200}』")
_WHOLLY_QUOTED = 0.8
_SENTENCE_ENDS = frozenset("?？!！;；。।…")
_QUESTION_MARKS = frozenset("?？")
_LIKE_SPACE = frozenset('"“”„«»「」『』¶¿¡*#`()[]|_')
_ABBREVIATION = re.compile(r"\w|mr|mrs|ms|dr|prof|st|no|nr|art|vs|cf|inc|ltd|approx|max|min|etc|bzw|usw|sra?")
_MOST_OPENINGS = 8

Piece = tuple[str, int, int]
"""Characters that are read, and where in the text they come from: start and end."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A question, ready for the rules.

    Args:
        text: what the rules search: one sentence a line, ``¶`` where an ask begins.
        pieces: what was read, in order; together they are ``text`` without its ``¶``.
        marks: where in ``text`` each ``¶`` stands.
    """

    text: str
    pieces: tuple[Piece, ...] = field(repr=False)
    marks: tuple[int, ...] = field(repr=False)

    @property
    def words(self) -> frozenset[str]:
        """The words and the signs that are read."""
        return frozenset(_TOKEN.findall(self.text))

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where ``text[start:end]`` stands in the question."""
        marks_before = bisect_left(self.marks, start), bisect_left(self.marks, end)
        places = list(self._places(start - marks_before[0], end - marks_before[1]))
        return (places[0][0], places[-1][1]) if places else (0, 0)

    def _places(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        offset = 0
        for piece, begin, stop in self.pieces:
            first, last = max(start - offset, 0), min(end - offset, len(piece))
            if first < last and begin < stop:
                # A piece that reads as it is typed is placed letter by letter.
                exact = len(piece) == stop - begin
                yield (begin + first, begin + last) if exact else (begin, stop)
            offset += len(piece)


def read(question: str, lexicon: Lexicon) -> Reading:
    """Fold, mend and split ``question``, and mark where its asks begin."""
    sentences = list(_sentences(question, lexicon.substitutes))
    lines = ["".join([piece for piece, _, _ in sentence]) for sentence in sentences]
    starts = [_marks(line, lexicon) for line in lines]
    if lines and not any(starts):
        starts = [[match.end() for match in lexicon.openings.indirect.finditer(line)][:1] for line in lines]
    if lines and not any(starts):
        asked = next((i for i, line in enumerate(lines) if "?" in line), 0)
        starts[asked] = [_ask_start(lines[asked], lexicon)]
    text, marks, pieces = "", [], []
    for sentence, line, places in zip(sentences, lines, starts, strict=True):
        done = 0
        for place in sorted(set(places)):
            text += line[done:place]
            marks.append(len(text))
            text += ASK
            done = place
        text += line[done:] + "\n"
        end = sentence[-1][2]
        pieces += [*sentence, ("\n", end, end)]
    return Reading(text, tuple(pieces), tuple(marks))


def _sentences(question: str, substitutes: Mapping[str, str]) -> Iterator[list[Piece]]:
    sentence: list[Piece] = []
    worded = False
    for piece, start, end, ends_sentence in _pieces(question, substitutes):
        if piece != " ":
            sentence.append((piece, start, end))
            worded = worded or piece[0].isalnum()
        elif sentence and sentence[-1][0] != " ":
            sentence.append((piece, start, end))
        if ends_sentence:
            if worded:
                yield sentence[:-1] if sentence[-1][0] == " " else sentence
            sentence, worded = [], False
    if worded:
        yield sentence


def _pieces(question: str, substitutes: Mapping[str, str]) -> Iterator[tuple[str, int, int, bool]]:
    """Each word or character as it is read, its place, and whether a sentence ends with it."""
    ranges = _ranges(len(question))
    quotes = {match.start(): match.end() for place in ranges for match in _QUOTED.finditer(question, *place)}
    if quotes and max(end - start for start, end in quotes.items()) > _WHOLLY_QUOTED * len(question.strip()):
        quotes = {}
    word, quoted_until = "", 0
    for begin, stop in ranges:
        for match in _PIECE.finditer(question, begin, stop):
            piece = match[0]
            start, end = match.span()
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


def _ask_start(sentence: str, lexicon: Lexicon) -> int:
    """Where the only ask of a text begins that looks like none: after its opening."""
    begin, _ = _skip_openings(sentence, lexicon)
    return begin if begin < len(sentence) else 0


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
