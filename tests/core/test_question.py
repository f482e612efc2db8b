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

SHAPES = {
    "amount": """how much is parking at the old mill
        vat rate on children's books
        What is the highest fare a pensioner can be charged?
        rated load of crane 3
        At what age may a junior member vote?
        how wide is the loading bay door
        I signed in a hurry last Friday. What's the most I can withdraw per day?
        what is the comparison rate on the car loan
        What is the catalogue price listed for item 221?
        speed limit in zone 4
        What would a second key cost?""",
    "date": """when is the ferry inspection
        By when must the tenant give notice?
        due date for module 3 essay
        I'm catching up after a holiday, one thing: when did the outage begin?
        what time does the canteen close
        In what year was the partnership founded?
        best before date of the yoghurt lot
        valid until when is my parking permit?""",
    "duration": """how long does the glue take to dry
        notice period for the cleaner's contract
        How many working days does a visa take?
        warranty on the heat pump
        how much time do I have to appeal""",
    "boolean": """is the sauna open on Sundays
        Can every tenant use the roof terrace?
        would you mind telling me whether the deposit was returned
        I'd like to know if pets are allowed.
        isn't the second filter washable
        Are there more than 25 seats in the hall?
        Is a summary of the meeting sent to everyone?
        I'm not certain of one thing. Has the waiting list closed?""",
    "entity": """Who compiled the list of suppliers?
        which airport does the charter leave from
        serial number of the backup generator
        whose signature is on the deed
        name of the clinic's data protection officer
        To whom should complaints be addressed?
        Who acted for the bank in Miller vs. Stone?
        Which version of the form is current?""",
    "definition": """what is a sinking fund
        What does EBITDA stand for?
        define beneficial owner
        explain zero trust
        "peak shaving" meaning of the term""",
    "count": """How many seats does the minibus have?
        how many members must be present for a quorum
        number of lifts in the north tower""",
    "aggregate": """How many of the sensors failed?
        how many invoices are still unpaid
        How many complaints has the depot received since March?
        how many parcels did we lose last year""",
    "procedure": """How do I bleed the radiator?
        how to descale a kettle
        add a new user to the vpn
        What is the process for ordering a replacement badge?
        Walk me through closing the month
        How is the blood sample taken?""",
    "list": """list all exits of the north hall
        could you list the trustees
        Which machines are due for maintenance?
        what documents do I need for a fishing permit
        Show me every clause about noise
        allergens in the canteen lasagne
        exclusions in the boat policy
        who are the members of the audit panel
        What should I bring to the interview?
        What's not allowed in the cabin?
        Name three hazards of the solvent""",
    "comparison": """what is the difference between a lien and a mortgage
        Is the north gate busier than the south gate?
        compare the two bids
        diesel vs electric for the delivery round
        Which is quieter, the A40 or the B60?
        how does the spring term differ from the autumn term
        Has output increased since the new boiler?
        pros and cons of leasing a van""",
    "superlative": """Which depot loses the most parcels?
        who had the highest sales in April
        what is the cheapest room
        Which of the three leases ends first?""",
    "summary": """Summarise the coroner's report
        give me an overview of the merger
        can you sum up what the neighbours object to
        tldr of the privacy notice
        What does the lease say about subletting?
        Why was the permit refused?
        What happens if I miss a payment?""",
}

SEVERAL = """What is the fee and when is it due?
    Who is the caretaker and what is her phone number?
    opening hours and address of the library
    When and where does the choir meet?
    Who wrote the audit? When was it signed?
    How do I change my address and how long does it take?"""

MULTI_HOP = """What is the native language of the person who designed the bridge?
    Who manages the team that built the billing service?
    What is the phone number of the doctor who treated Mr Lee?
    Where was the author of the safety manual born?"""

OTHER_LANGUAGES = {
    "de": {
        "Wann endet die Garantie?": "date",
        "Wie hoch ist die Kaution?": "amount",
        "Darf ich den Hund mitbringen?": "boolean",
        "Welche Unterlagen brauche ich?": "list",
        "Wie beantrage ich Elterngeld?": "procedure",
        "Unterschied zwischen Miete und Pacht": "comparison",
        "Fassen Sie den Bericht zusammen": "summary",
    },
    "fr": {
        "Qui dirige le service comptabilité ?": "entity",
        "Combien coûte l'abonnement ?": "amount",
        "Est-ce que la garantie couvre la batterie ?": "boolean",
        "Quels documents faut-il fournir ?": "list",
        "Comment renouveler mon passeport ?": "procedure",
        "Qu'est-ce qu'une hypothèque ?": "definition",
    },
    "es": {
        "¿Cuándo vence el contrato?": "date",
        "¿Cuánto cuesta la matrícula?": "amount",
        "¿Qué documentos necesito para el visado?": "list",
        "¿Cómo puedo cambiar mi contraseña?": "procedure",
        "¿Qué tienda vendió más en mayo?": "superlative",
    },
    "ja": {
        "保証期間はどのくらいですか": "duration",
        "この商品は返品できますか": "boolean",
        "パスワードの変更方法を教えてください": "procedure",
        "AプランとBプランの違いは何ですか": "comparison",
    },
    "zh": {
        "谁是项目负责人": "entity",
        "可以退货吗": "boolean",
        "申请签证需要哪些材料": "list",
        "什么是不可抗力": "definition",
    },
    "hi": {
        "फीस कितनी है": "amount",
        "पासवर्ड कैसे बदलें": "procedure",
        "रिपोर्ट का सारांश दें": "summary",
    },
}

QUESTION_WORD = st.sampled_from(
    re.findall(r"\S+", 'how many which what when is the most or and than of who list ? . : "')
)
LANGUAGES = ["en", "de", "fr", "es", "ja", "zh", "hi"]


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines()]


@pytest.mark.parametrize(
    ("text", "shape"), [(text, shape) for shape, texts in SHAPES.items() for text in lines(texts)]
)
def test_a_single_ask_in_english(text: str, shape: str) -> None:
    found = parse_question(text)
    assert (found.answer_shape, found.decomposition, found.language) == (shape, "single", "en"), found


@pytest.mark.parametrize("text", lines(SEVERAL))
def test_several_asks(text: str) -> None:
    assert parse_question(text).decomposition == "several_asks"


@pytest.mark.parametrize("text", lines(MULTI_HOP))
def test_an_ask_that_needs_the_answer_of_another(text: str) -> None:
    assert parse_question(text).decomposition == "multi_hop"


@pytest.mark.parametrize(
    ("language", "text", "shape"),
    [(language, text, shape) for language, texts in OTHER_LANGUAGES.items() for text, shape in texts.items()],
)
def test_other_languages(language: str, text: str, shape: str) -> None:
    found = parse_question(text)
    assert (found.answer_shape, found.language) == (shape, language), found


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
