"""Phase: a question's words -> its shape -> the way it is answered."""

from lara_plugins.question.lexicon import Lexicon, default_lexicons, load_lexicon
from lara_plugins.question.parser import QuestionParser, default_parser, load_parser, parse_question
from lara_plugins.question.routing import DEFAULT_LIMITS, Limits, limits_of, route, tight_count
from lara_plugins.question.rules import Rule
from lara_plugins.question.shape import (
    SINGLE_VALUES,
    AnswerShape,
    Decomposition,
    QuestionShape,
    Regime,
    Route,
)

__all__ = [
    "DEFAULT_LIMITS",
    "SINGLE_VALUES",
    "AnswerShape",
    "Decomposition",
    "Lexicon",
    "Limits",
    "QuestionParser",
    "QuestionShape",
    "Regime",
    "Route",
    "Rule",
    "default_lexicons",
    "default_parser",
    "limits_of",
    "load_lexicon",
    "load_parser",
    "parse_question",
    "route",
    "tight_count",
]
