"""Scores that are remembered, for applications that ask the same question again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b

from lara_plugins.arguments import check_count
from lara_plugins.errors import ScoreError
from lara_plugins.gate.engines.blocks import RawScore, as_block
from lara_plugins.gate.scorer import Block, ScoreKind, Scorer
from lara_plugins.gate.scoring import to_scores

DEFAULT_SIZE = 20_000
"""Scores that are kept: a hundred questions with two hundred passages; about 4 MB."""


class CachingScorer:
    """A scorer that scores a passage against a question once, and then remembers it.

    The scores used longest ago are forgotten first. What is kept is a hash of fingerprint, query
    and passage, never their text. One instance serves many threads; two that ask for the same
    score at once may both compute it. A copy, or what comes out of a pickle, remembers nothing.

    Args:
        scorer: what scores the passages that are not known yet.
        size: most scores that are kept.

    Raises:
        InvalidArgument: ``size`` is below 1.
    """

    def __init__(self, scorer: Scorer, size: int = DEFAULT_SIZE) -> None:
        check_count("size", size, "give the most scores to keep, 1 or more")
        self._scorer = scorer
        self._size = size
        self._kept: OrderedDict[bytes, RawScore] = OrderedDict()
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[CachingScorer], tuple[Scorer, int]]:
        return (type(self), (self._scorer, self._size))

    def __len__(self) -> int:
        """How many scores are kept."""
        with self._lock:
            return len(self._kept)

    @property
    def name(self) -> str | None:
        """The scorer's own, which brings the same scores back, but no cache."""
        return self._scorer.name

    @property
    def score_kind(self) -> ScoreKind:
        return self._scorer.score_kind

    @property
    def scale_known(self) -> bool:
        return self._scorer.scale_known

    @property
    def fingerprint(self) -> str:
        return self._scorer.fingerprint

    def load(self) -> None:
        """Load the scorer's weights now."""
        self._scorer.load()

    def blocks(self, query: str, texts: Sequence[str]) -> Iterator[Block]:
        """Yield a block as often as the scorer does, which is given the unknown texts only.

        Raises:
            ScoreError: the scorer returned something that is not a score.
        """
        keys = _keys(self.fingerprint, query, texts)
        known = self._recall(keys)
        misses = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        waiting = list(misses)
        yielded = 0
        for block in self._scorer.blocks(query, list(misses.values())) if misses else ():
            fresh = dict(zip(waiting, _raw(block), strict=False))
            if len(fresh) < len(block.scores):
                raise ScoreError(
                    f"the scorer returned more scores than the {len(misses)} passages it was given"
                )
            to_scores(block.scores, self.score_kind)  # so that what is no score is never kept
            self._keep(fresh)
            known |= fresh
            waiting = waiting[len(fresh) :]
            ready = len(keys) if not waiting else keys.index(waiting[0])
            yield as_block([known[key] for key in keys[yielded:ready]])
            yielded = ready
        if waiting:
            missing = f"{len(misses) - len(waiting)} scores for {len(misses)} passages"
            raise ScoreError(f"the scorer returned {missing}")
        if yielded < len(keys):
            yield as_block([known[key] for key in keys[yielded:]])

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """The raw scores of all ``texts``, in order."""
        return [score for block in self.blocks(query, texts) for score in block.scores]

    def _recall(self, keys: Iterable[bytes]) -> dict[bytes, RawScore]:
        """What is known of these, and from now on used last."""
        with self._lock:
            known = {key: self._kept[key] for key in keys if key in self._kept}
            for key in known:
                self._kept.move_to_end(key)
        return known

    def _keep(self, fresh: Mapping[bytes, RawScore]) -> None:
        with self._lock:
            self._kept.update(fresh)
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)


def _keys(fingerprint: str, query: str, texts: Sequence[str]) -> list[bytes]:
    asked = blake2b(digest_size=16)
    for part in (fingerprint, query):
        encoded = part.encode("utf-8", "surrogatepass")
        asked.update(len(encoded).to_bytes(8, "little") + encoded)
    keys = []
    for text in texts:
        key = asked.copy()
        key.update(text.encode("utf-8", "surrogatepass"))
        keys.append(key.digest())
    return keys


def _raw(block: Block) -> list[RawScore]:
    truncated = set(block.truncated)
    return [RawScore(score, position in truncated) for position, score in enumerate(block.scores)]
