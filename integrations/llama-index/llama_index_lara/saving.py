"""What a component is saved as: names, from which its parts are made again."""

from __future__ import annotations

import pickle

from llama_index.core.schema import BaseComponent
from pydantic import ConfigDict, SkipValidation, field_serializer

from lara_plugins import NotSerializable, Scorer
from lara_plugins.gate import serializable_name

EMBEDDED = "embedded"
NAMED_SCORER = f"give the name of a scorer, such as '{EMBEDDED}'"


class HoldsScorer(BaseComponent):
    """A component with a scorer, which is saved by its name.

    Args:
        scorer: a scorer or its name.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    scorer: SkipValidation[str | Scorer] = EMBEDDED

    @field_serializer("scorer")
    def _scorer_name(self, scorer: str | Scorer) -> str:
        return serializable_name(scorer)

    def to_dict(self, **kwargs: object) -> dict[str, object]:
        serializable_name(self.scorer)
        return super().to_dict(**kwargs)

    def __getstate__(self) -> dict[str, object]:
        check_pickles(self.scorer, NAMED_SCORER)
        return super().__getstate__()


def check_pickles(part: object, remedy: str) -> None:
    """Refuse what cannot be pickled: the framework would drop it and restore a default in its place.

    Raises:
        NotSerializable: the part cannot be pickled.
    """
    try:
        pickle.dumps(part)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise NotSerializable(f"the {type(part).__name__} cannot be pickled ({error}): {remedy}") from error
