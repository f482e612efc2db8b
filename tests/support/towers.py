"""A small corpus with a lookup, a listing, a comparison and distractors in it."""

from __future__ import annotations

from lara_plugins import Passage

FACTS = {
    "Eiffel Tower": "The Eiffel Tower is 330 metres tall. It was completed in 1889 for a fair in Paris.",
    "Tokyo Tower": "Tokyo Tower is 333 metres tall. It was completed in 1958 and carries broadcast antennas.",
    "Blackpool Tower": "Blackpool Tower in England is 158 metres tall. It opened to the public in 1894.",
    "CN Tower": "The CN Tower in Toronto is 553 metres tall. It was completed in 1976 by a railway company.",
    "Ostankino Tower": "Ostankino Tower in Moscow is 540 metres tall. It was completed in 1967.",
    "Tower of Pisa": "The Tower of Pisa is a bell tower. It leans because its foundation is soft.",
    "Gustave Eiffel": "Gustave Eiffel was an engineer. His company built the Eiffel Tower and many bridges.",
    "Radio masts": "A radio mast is held by guy wires. A tower stands free and needs a wide base.",
    "Paris": "Paris is the capital of France. The river Seine runs through the city.",
    "Toronto": "Toronto is the largest city of Canada. It lies on the shore of Lake Ontario.",
    "Gardening": "Tomatoes need six hours of sun a day. Water them in the morning.",
    "Baking": "Bread rises because yeast makes gas. Let the dough rest for two hours.",
}

PASSAGES = [
    Passage(f"p{n}", text, heading=title, source=f"{n}.md") for n, (title, text) in enumerate(FACTS.items())
]

LOOKUP = "How tall is the Eiffel Tower?"
LISTING = "Which towers are taller than 300 metres?"
COMPARISON = "Is the CN Tower taller than Tokyo Tower?"
UNANSWERABLE = "What is the boiling point of mercury?"
