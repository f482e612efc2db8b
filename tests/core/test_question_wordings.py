"""The wordings that the parser reads: each list is one kind of question."""

from __future__ import annotations

import pytest

from lara_plugins.question import parse_question

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
        What would a second key cost?
        what will the new fence come to
        bending radius steel pipe
        His glucose after lunch?
        before I sign: what do I have to spend for free delivery
        up to what sum am I insured
        discount % for members""",
    "date": """when is the ferry inspection
        By when must the tenant give notice?
        due date for module 3 essay
        I'm catching up after a holiday, one thing: when did the outage begin?
        what time does the canteen close
        In what year was the partnership founded?
        best before date of the yoghurt lot
        valid until when is my parking permit?
        membership expires when
        rehearsal for the play which day
        next fire drill?
        closing date scholarship""",
    "duration": """how long does the glue take to dry
        notice period for the cleaner's contract
        How many working days does a visa take?
        warranty on the heat pump
        how often must the sieve be cleaned
        delivery time roof tiles
        days of rest after a vaccination
        how much time do I have to appeal""",
    "boolean": """is the sauna open on Sundays
        Can every tenant use the roof terrace?
        would you mind telling me whether the deposit was returned
        I'd like to know if pets are allowed.
        isn't the second filter washable
        Are there more than 25 seats in the hall?
        Is a summary of the meeting sent to everyone?
        I'm not certain of one thing. Has the waiting list closed?
        bicycle insured yes or no
        ok to freeze the soup?
        scratched lid, used twice. still refundable?
        any chance the office is open today?
        the roof is insulated, right?
        did both tenants sign
        has she been vaccinated against measles""",
    "entity": """Who compiled the list of suppliers?
        which airport does the charter leave from
        serial number of the backup generator
        whose signature is on the deed
        name of the clinic's data protection officer
        To whom should complaints be addressed?
        Who acted for the bank in Miller vs. Stone?
        Which version of the form is current?
        tracking number parcel 7781
        Show me the IBAN for donations
        Whose desk handles objections against a bill?
        what did they name the new ferry
        landlord's phone no""",
    "definition": """what is a sinking fund
        What does EBITDA stand for?
        define beneficial owner
        explain zero trust
        "peak shaving" meaning of the term
        There is a code on my ticket, B7. What does it mean?
        explain in plain words what a lien is
        ETA stands for?""",
    "count": """How many seats does the minibus have?
        how many members must be present for a quorum
        number of lifts in the north tower""",
    "aggregate": """How many of the sensors failed?
        how many invoices are still unpaid
        How many complaints has the depot received since March?
        how many parcels did we lose last year
        tally of parcels in the export that came back without a label
        number of trainees off sick in week 9""",
    "procedure": """How do I bleed the radiator?
        how to descale a kettle
        add a new user to the vpn
        What is the process for ordering a replacement badge?
        Walk me through closing the month
        How is the blood sample taken?
        resetting my alarm code
        claiming mileage for March
        need help changing my tariff
        I lost my key yesterday, what should I do now?
        my bike was stolen, what now
        draining a radiator, no idea where to start""",
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
        Name three hazards of the solvent
        Who spoke at the opening?
        who got a new desk last month
        who left the choir this year
        which suppliers responded
        Who were on the jury
        Whose permits have lapsed?
        what did tenant 4 send back in May
        what is Mr Falk allergic to
        What was delivered on Friday?
        Tell me what fault codes the lift showed after the storm.
        circumstances in which the bank may cancel
        What are they?
        Under what conditions may I sublet?
        what the tenant has to repair himself
        are there any forms I have to bring
        What should the notice contain?""",
    "comparison": """what is the difference between a lien and a mortgage
        Is the north gate busier than the south gate?
        compare the two bids
        diesel vs electric for the delivery round
        Which is quieter, the A40 or the B60?
        how does the spring term differ from the autumn term
        Has output increased since the new boiler?
        pros and cons of leasing a van
        is tariff B cheaper
        have our debts been getting older since spring
        did we use more gas after the move than before
        are rents rising
        Where does the signed lease depart from the draft?
        rev A and rev B of the plan - what moved?
        cheaper to post it or to drive
        does the night shift produce more waste
        Do temps earn as much as permanent staff?
        what has become dearer since May""",
    "superlative": """Which depot loses the most parcels?
        who had the highest sales in April
        what is the cheapest room
        Which of the three leases ends first?
        biggest customer by revenue last year
        oldest open ticket
        our slowest moving product
        what did we spend the most money on
        what is the busiest day of the week
        the driver with the fewest accidents
        where do most breakdowns happen""",
    "summary": """Summarise the coroner's report
        give me an overview of the merger
        can you sum up what the neighbours object to
        tldr of the privacy notice
        What does the lease say about subletting?
        Why was the permit refused?
        What happens if I miss a payment?
        tell me about the pension reform
        staff survey: what did it all boil down to
        what's in the noise rules, short version
        what's going on with ticket 14
        importance of early feedback""",
}

SEVERAL = """What is the fee and when is it due?
    Who is the caretaker and what is her phone number?
    opening hours and address of the library
    When and where does the choir meet?
    Who wrote the audit? When was it signed?
    How do I change my address and how long does it take?
    opening hours of the depot + do they take cards
    dose of the syrup he was given, and does it clash with beer
    Is physio covered, and if so for how many sessions?
    Please let me know who the guarantor is and up to what amount he is liable.
    who chairs the panel and for how long
    where do I send it and by when
    name, rank and number of the officer"""

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
        "Anzugsmoment Radschrauben": "amount",
        "Wartezeit Zahnersatz": "duration",
        "an welche Mailadresse gehen Mahnungen": "entity",
        "wollte fragen, ob die Miete schon bezahlt ist": "boolean",
        "Wie viele Klagen sind im Mai eingegangen?": "aggregate",
        "Teile, die beim Umbau getauscht wurden": "list",
        "wer hat letztes Jahr gekündigt": "list",
        "Sind die Kosten seit März höher geworden?": "comparison",
        "unser ältestes Fahrzeug": "superlative",
        "Kessel entlüften": "procedure",
    },
    "fr": {
        "Qui dirige le service comptabilité ?": "entity",
        "Combien coûte l'abonnement ?": "amount",
        "Est-ce que la garantie couvre la batterie ?": "boolean",
        "Quels documents faut-il fournir ?": "list",
        "Comment renouveler mon passeport ?": "procedure",
        "Qu'est-ce qu'une hypothèque ?": "definition",
        "on peut payer en deux fois ou pas": "boolean",
        "qui est parti à la retraite l'an dernier": "list",
        "contrat B-12 : date d'échéance ?": "date",
        "La tension est-elle plus basse qu'hier ?": "comparison",
        "notre plus gros client": "superlative",
        "On m'a volé mon vélo, que faire ?": "procedure",
    },
    "es": {
        "¿Cuándo vence el contrato?": "date",
        "¿Cuánto cuesta la matrícula?": "amount",
        "¿Qué documentos necesito para el visado?": "list",
        "¿Cómo puedo cambiar mi contraseña?": "procedure",
        "¿Qué tienda vendió más en mayo?": "superlative",
        "¿Cómo se llama el notario que firmó la escritura?": "entity",
        "cuántas facturas quedaron sin pagar en mayo": "aggregate",
        "¿Tarda más el tren desde la reforma?": "comparison",
        "quién se jubiló el año pasado": "list",
        "¿Lleva gluten?": "boolean",
    },
    "ja": {
        "保証期間はどのくらいですか": "duration",
        "この商品は返品できますか": "boolean",
        "パスワードの変更方法を教えてください": "procedure",
        "AプランとBプランの違いは何ですか": "comparison",
        "転居届に必要なもの": "list",
        "証明書の出し方": "procedure",
        "返金まで何日かかりますか": "duration",
        "規約は全部で何条ありますか": "count",
        "待ち時間は長くなっていますか": "comparison",
    },
    "zh": {
        "谁是项目负责人": "entity",
        "可以退货吗": "boolean",
        "申请签证需要哪些材料": "list",
        "什么是不可抗力": "definition",
        "上个月有多少订单没发货": "aggregate",
        "今年拿到奖金的有谁": "list",
        "术后体重跟术前比怎么样": "comparison",
        "发票付了没有": "boolean",
        "我们最大的客户": "superlative",
    },
    "hi": {
        "फीस कितनी है": "amount",
        "पासवर्ड कैसे बदलें": "procedure",
        "रिपोर्ट का सारांश दें": "summary",
        "मकान बीमित है या नहीं?": "boolean",
        "भवन में कितने कमरे हैं": "count",
        "बैठक में क्या तय हुआ": "list",
    },
}


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
