"""Data sets, metrics and what is measured with them; nothing else in the package imports it."""

from lara_plugins.evaluation.datasets import DataSet, Question, load_dataset
from lara_plugins.evaluation.metrics import (
    Abstention,
    abstention,
    contains_answer,
    normalise_answer,
    recall_at,
    reciprocal_rank,
)

__all__ = [
    "Abstention",
    "DataSet",
    "Question",
    "abstention",
    "contains_answer",
    "load_dataset",
    "normalise_answer",
    "recall_at",
    "reciprocal_rank",
]
