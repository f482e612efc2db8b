"""LARA for LlamaIndex: what replaces the fixed top-k in an existing query engine."""

from lara_plugins.version import __version__
from llama_index_lara.budget import LatencyBudget
from llama_index_lara.engine import QuestionShapeQueryEngine, lara_query_engine
from llama_index_lara.events import LaraDecisionEvent
from llama_index_lara.extractive import ExtractiveLLM
from llama_index_lara.gate import ThresholdGate
from llama_index_lara.retriever import HybridRetriever
from llama_index_lara.synthesizer import RefineInThrees

__all__ = [
    "ExtractiveLLM",
    "HybridRetriever",
    "LaraDecisionEvent",
    "LatencyBudget",
    "QuestionShapeQueryEngine",
    "RefineInThrees",
    "ThresholdGate",
    "__version__",
    "lara_query_engine",
]
