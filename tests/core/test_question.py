from __future__ import annotations

import os
import pickle
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lara_plugins.errors import InvalidArgument
from lara_plugins.question import (
    Lexicon,
    QuestionParser,
    QuestionShape,
    Rule,
    default_lexicons,
    load_lexicon,
    parse_question,
)

DATA = Path(os.environ.get("LARA_DATA", Path(__file__).parents[2].parent / "shared" / "data"))

QUESTION_WORD = st.sampled_from(
    re.findall(r"\S+", 'how many which what when is the most or and than of who list ? . : "')
)
LANGUAGES = ["en", "de", "fr", "es", "ja", "zh", "hi"]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("waht is a sinking fund", "definition"),
        ("whta time does it open", "date"),
        ("hwo many seats does the minibus have", "count"),
        ("hwo long is the trial", "duration"),
        ("wich machines are due for maintenance", "list"),
        ("whats the diference between gross and net", "comparison"),
        ("summarzie the lease", "summary"),
        ("wher is the meter", "entity"),
        ("whenn did the lease begin", "date"),
        ("wahts the late fee", "amount"),
        ("difrence between gross and net", "comparison"),
    ],
)
def test_typing_errors_in_frequent_words_are_mended(typed: str, meant: str) -> None:
    assert parse_question(typed).answer_shape == meant


@pytest.mark.parametrize(
    "text", ["Quando scade la polizza?", "Когда истекает договор?", "보증 기간은 얼마입니까?"]
)
def test_an_unsupported_language_is_unknown(text: str) -> None:
    found = parse_question(text)
    assert (found.answer_shape, found.language, found.span) == ("unknown", "und", (0, len(text)))


def test_a_stated_language_is_not_detected() -> None:
    assert parse_question("Garantie", language="de-AT").language == "de"
    assert parse_question("When does it end?", language="it").language == "und"
    with pytest.raises(InvalidArgument, match="language=5"):
        parse_question("When does it end?", language=5)  # type: ignore[arg-type]


def test_slips_tell_of_the_language_in_which_they_are_slips() -> None:
    assert parse_question("wat is teh late fee").answer_shape == "amount"
    assert parse_question("wat is de boete").language == "und"


@pytest.mark.parametrize(
    "text", ["Ｗｈｅｎ ｉｓ ｔｈｅ ｒｅｎｔ ｄｕｅ？", "𝐖𝐡𝐞𝐧 𝐢𝐬 𝐭𝐡𝐞 𝐫𝐞𝐧𝐭 𝐝𝐮𝐞?", "𝘸𝘩𝘦𝘯 𝘪𝘴 𝘵𝘩𝘦 𝘳𝘦𝘯𝘵 𝘥𝘶𝘦"]
)
def test_styled_letters_read_as_plain_ones(text: str) -> None:
    assert parse_question(text).answer_shape == "date"


@pytest.mark.parametrize("code", ["NL", "nl-BE", "Nl"])
def test_the_case_and_the_region_of_a_language_do_not_matter(code: str) -> None:
    parser = QuestionParser([Lexicon(code, (Rule("when", "wanneer", answer_shape="date"),))])
    assert parser.parse("Wanneer?", "nl") == parser.parse("Wanneer?", "NL-nl")
    assert parser.parse("Wanneer?", "nl").language == "nl"


@pytest.mark.parametrize("sign", ["\ufeff", "\u200b", "\u200e", "\u202b", "\u2060", "\u00ad"])
def test_invisible_signs_are_not_read(sign: str) -> None:
    shape = parse_question(f"{sign}when is {sign}rent due?{sign}")
    assert (shape.answer_shape, shape.rule, shape.span) == ("date", "when", (1, 5))


def test_the_rule_and_its_words_are_named() -> None:
    text = "Hello! Could you tell me: how many seats does the minibus have?"
    found = parse_question(text)
    assert found.rule == "how-many"
    assert text[slice(*found.span)] == "how many"


def test_the_span_counts_in_the_text_as_typed() -> None:
    text = "Naïve question… isn’t the  sauna open?"
    start, end = parse_question(text).span
    assert text[start:end].startswith("isn’t")


@pytest.mark.parametrize(
    ("argument", "call"), [("text", ("",)), ("text", (" \n\t",)), ("language", ("when?", "english"))]
)
def test_bad_input_names_the_argument(argument: str, call: tuple[str, ...]) -> None:
    with pytest.raises(InvalidArgument) as caught:
        parse_question(*call)
    assert caught.value.argument == argument


@pytest.mark.parametrize(
    "piece",
    [
        "which most or than ",
        "a of the b who ",
        '"',
        "¶",
        "how many have ",
        "最哪",
        "x, and what ",
        "((((",
        "or ",
    ],
)
def test_a_text_of_a_hundred_thousand_characters_has_a_shape(piece: str) -> None:
    text = (piece * 100_000)[:100_000]
    found = parse_question(text)
    assert found == parse_question(text)
    assert 0 <= found.span[0] <= found.span[1] <= len(text)


def test_the_ask_is_found_behind_a_pasted_text() -> None:
    assert parse_question("The pump ran all night. " * 800 + "When was it stopped?").answer_shape == "date"


@given(st.text(min_size=1).filter(str.strip))
def test_any_text_has_one_shape_and_a_span_within_it(text: str) -> None:
    found = parse_question(text)
    assert found == parse_question(text)
    assert 0 <= found.span[0] <= found.span[1] <= len(text)


@given(st.lists(QUESTION_WORD, min_size=1), st.sampled_from(LANGUAGES))
def test_question_words_in_any_order_never_raise(words: list[str], language: str) -> None:
    text = " ".join(words)
    found = parse_question(text, language)
    assert 0 <= found.span[0] <= found.span[1] <= len(text)


def test_a_rule_can_be_added() -> None:
    english = load_lexicon("en").with_rules(Rule("ticket", r"\bticket {word}", answer_shape="entity"))
    found = QuestionParser([english]).parse("ticket queues")
    assert (found.answer_shape, found.rule, found.span) == ("entity", "ticket", (0, 13))
    assert parse_question("ticket queues").rule != "ticket"


def test_a_language_can_be_added_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "sw.toml"
    file.write_text(
        'language = "sw"\nmarkers = ["lini", "nini"]\n[vocabularies]\nasking = ["lini"]\n'
        '[[rules]]\nname = "when"\nanswer_shape = "date"\npattern = "{asking}"\n',
        encoding="utf-8",
    )
    parser = QuestionParser([*default_lexicons(), load_lexicon(file)])
    assert parser.parse("mkataba unaisha lini?") == QuestionShape("date", "single", "sw", "when", (16, 20))


def test_a_wrong_lexicon_is_refused_with_its_reason(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="names no vocabulary"):
        QuestionParser([Lexicon("en", (Rule("r", "{nothing}", answer_shape="list"),))])
    with pytest.raises(InvalidArgument, match="regular expression"):
        QuestionParser([Lexicon("en", (Rule("r", "(", answer_shape="list"),))])
    with pytest.raises(InvalidArgument, match="holds itself"):
        QuestionParser([Lexicon("en", (Rule("r", "{a}", answer_shape="list"),), phrases={"a": "x{a}"})])
    with pytest.raises(InvalidArgument, match="either"):
        Rule("r", "x")
    with pytest.raises(InvalidArgument, match="one a language"):
        QuestionParser([Lexicon("en", ()), Lexicon("en", ())])
    with pytest.raises(InvalidArgument, match="lexicons"):
        QuestionParser([])
    with pytest.raises(InvalidArgument, match="language='Dutch'"):
        Lexicon("Dutch", ())
    file = tmp_path / "xx.toml"
    file.write_text('language = "xx"\nrule = []\n', encoding="utf-8")
    with pytest.raises(InvalidArgument, match="rule is no field"):
        load_lexicon(file)
    file.write_text("spaced = true", encoding="utf-8")
    with pytest.raises(InvalidArgument, match="a line such as language"):
        load_lexicon(file)
    file.write_text('language = "xx"\n[[rules]]\nname = "r"\nsays = "list"\n', encoding="utf-8")
    with pytest.raises(InvalidArgument, match="give each rule"):
        load_lexicon(file)
    with pytest.raises(InvalidArgument, match="source"):
        load_lexicon("klingon")


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ('markers = ["wat', "TOML"),
        ('mend = "hoe"', "make mend a list of texts"),
        ('spaced = "no"', "make spaced true or false"),
        ("typos = [1]", "make typos a table of texts"),
        ("rules = [1]", "make rules a list of tables"),
        ('[vocabularies]\nask = "wat"', "make vocabularies a table of lists of texts"),
        ("[vocabularies]\nask = [1]", "make vocabularies a table of lists of texts"),
        ("[phrases]\nopening = 3", "make phrases a table of texts"),
        ('[[rules]]\nname = "a"\npattern = 3', "make pattern of a rule a text"),
        ('[[rules]]\nname = "a"\npattern = "x"\nneeds = "x"', "make needs of a rule a list of texts"),
    ],
)
def test_a_malformed_lexicon_is_refused_with_its_field(tmp_path: Path, lines: str, reason: str) -> None:
    place = tmp_path / "nl.toml"
    place.write_text(f'language = "nl"\n{lines}\n', encoding="utf-8")
    with pytest.raises(InvalidArgument, match=reason):
        load_lexicon(place)


def test_a_whole_table_can_be_replaced() -> None:
    mine = Lexicon(
        "en",
        (
            Rule("ticket", r"{thing} {word}", answer_shape="entity", needs=("{thing}",)),
            Rule("rest", r"\w", answer_shape="list"),
        ),
        vocabularies={"thing": ("ticket", "work order")},
    )
    parser = QuestionParser([mine])
    assert parser.parse("ticket 81").rule == "ticket"
    assert parser.parse("Work order 7, please").rule == "ticket"
    assert parser.parse("How long does it take?").rule == "rest"


@pytest.mark.parametrize("needs", [("{nothing}",), ("x{thing}",)])
def test_needs_name_words_or_vocabularies(needs: tuple[str, ...]) -> None:
    lexicon = Lexicon("en", (Rule("r", "x", answer_shape="list", needs=needs),))
    if needs[0].startswith("{"):
        with pytest.raises(InvalidArgument, match="names no vocabulary"):
            QuestionParser([lexicon])
    else:
        assert QuestionParser([lexicon]).parse("x thing").answer_shape == "unknown"


def test_every_rule_has_a_name_of_its_own() -> None:
    for lexicon in default_lexicons():
        repeated = [name for name, n in Counter(rule.name for rule in lexicon.rules).items() if n > 1]
        assert repeated == [], lexicon.language


def test_a_shape_can_be_pickled() -> None:
    shape = parse_question("when is it due?")
    assert pickle.loads(pickle.dumps(shape)) == shape  # noqa: S301
