"""Technical text for the training: the docstrings of Python and three packages, and questions made of them.

The other sets are paragraphs of an encyclopaedia. In a manual, every passage is about the subject,
and what is asked for is told by a few words; there is no set of people's questions about manuals
whose licence allows training on it. numpy, scipy and scikit-learn are under BSD-3-Clause, Python
under PSF-2.0; their text is read where they are installed.
"""

from __future__ import annotations

import importlib
import inspect
import random
import re
from collections import Counter
from collections.abc import Iterator
from types import ModuleType

from questions import Collection, Judged

from lara_plugins.retrieval.tokens import terms

MODULES = """
    numpy numpy.linalg numpy.random numpy.fft numpy.ma numpy.polynomial.polynomial scipy.optimize
    scipy.stats scipy.signal scipy.sparse scipy.sparse.linalg scipy.spatial scipy.ndimage
    scipy.interpolate scipy.integrate scipy.linalg scipy.cluster.hierarchy scipy.io sklearn.cluster
    sklearn.linear_model sklearn.ensemble sklearn.preprocessing sklearn.model_selection
    sklearn.metrics sklearn.svm sklearn.decomposition sklearn.feature_extraction.text
    sklearn.neighbors sklearn.pipeline sklearn.impute argparse asyncio collections
    concurrent.futures csv ctypes datetime decimal difflib email.message http.client http.cookiejar
    json logging logging.handlers multiprocessing os pathlib pickle random re shutil socket sqlite3
    ssl statistics string subprocess tarfile tempfile threading unittest urllib.request
    xml.etree.ElementTree zipfile
"""
LONGEST, SHORTEST = 900, 120
"""Characters of a passage."""

PASSAGES, QUESTIONS = 2400, 900
FREQUENT = 30
"""A word is frequent that more passages hold."""

HOLDERS = 3
"""A question is left out whose words more passages hold all of."""

_ENDS = re.compile(r"(?<=[.!?])\s+")
_MARKUP = re.compile(r":\w+:`~?([^`]*)`|`{1,2}([^`]*)`{1,2}|\.\. \w+::|[-=~^]{4,}|>>> .*|\[\d+\]_")
_SECTIONS = ("Examples", "References", "See Also")


def load_documentation() -> Collection:
    """The passages, each under its object's name, and a question of one of its sentences each."""
    chance = random.Random(0)  # noqa: S311
    found = list(dict.fromkeys(passage for name in MODULES.split() for passage in _passages(name)))
    named = chance.sample(found, PASSAGES)
    texts = [f"{title}\n{text}" for title, text in named]
    words = [set(terms(text)) for text in texts]
    holding = Counter(word for own in words for word in own)
    questions = []
    for position in chance.sample(range(len(texts)), len(texts)):
        question = _question(*named[position], holding, chance)
        if question is None or len(questions) == QUESTIONS:
            continue
        asked = {word for word in terms(question) if holding[word]}
        holders = frozenset(other for other, own in enumerate(words) if asked <= own)
        if position in holders and len(holders) <= HOLDERS:
            questions.append(Judged(question, "train", holders, None, ()))
    return Collection("documentation", tuple(title for title, _ in named), tuple(texts), tuple(questions))


def _passages(name: str) -> Iterator[tuple[str, str]]:
    """Title and text of each piece of the docstrings of a module's public objects."""
    module = importlib.import_module(name)
    for title, documented in _documented(module):
        text = inspect.cleandoc(documented)
        piece = ""
        for paragraph in re.split(r"\n\s*\n", text):
            plain = _MARKUP.sub(lambda found: found[1] or found[2] or "", paragraph).strip()
            if plain.startswith(_SECTIONS):
                break
            if len(piece) + len(plain) > LONGEST:
                if len(piece) >= SHORTEST:
                    yield title, piece
                piece = ""
            piece += ("\n" if piece else "") + plain[:LONGEST]
        if len(piece) >= SHORTEST:
            yield title, piece


def _documented(module: ModuleType) -> Iterator[tuple[str, str]]:
    for name in sorted(getattr(module, "__all__", dir(module))):
        found = vars(module).get(name)
        if name.startswith("_") or not callable(found):
            continue
        members = [(f"{module.__name__}.{name}", found)]
        if inspect.isclass(found):
            members += [
                (f"{module.__name__}.{name}.{key}", each)
                for key, each in sorted(vars(found).items())
                if not key.startswith("_") and callable(each)
            ]
        for title, each in members:
            if isinstance(documented := getattr(each, "__doc__", None), str):
                yield title, documented


def _question(title: str, text: str, holding: Counter[str], chance: random.Random) -> str | None:
    """What somebody could type who looks for one of the passage's sentences."""
    sentences = [s for s in _ENDS.split(text.replace("\n", " ")) if 6 <= len(terms(s)) <= 40]
    if not sentences:
        return None
    words = list(dict.fromkeys(terms(chance.choice(sentences))))
    rare = sorted(words, key=lambda word: holding[word])[: chance.randint(3, 6)]
    # A person knows some of the words, and asks with others.
    kept = [word for word in words if word in rare or (holding[word] > FREQUENT and chance.random() < 0.5)]
    about = title.rsplit(".", chance.randint(1, 2))[-1] if "." in title else title
    opening = chance.choice(("how to", "what is the", "which", "does", "when", "what does", "is the", ""))
    naming = chance.choice((f"in {about}", f"of {about}", "", "", ""))
    return " ".join(filter(None, (opening, *kept, naming)))
