"""LARA for LlamaIndex: what replaces the fixed top-k in an existing query engine."""

from lara_plugins.version import __version__
from llama_index_lara.budget import LatencyBudget
from llama_index_lara.encoder import dense_encoder
from llama_index_lara.engine import QuestionShapeQueryEngine, lara_query_engine
from llama_index_lara.events import LaraDecisionEvent
from llama_index_lara.extractive import ExtractiveLLM
from llama_index_lara.gate import ThresholdGate
from llama_index_lara.latency import observe_latency
from llama_index_lara.nodes import passages_of
from llama_index_lara.parser import AdaptiveNodeParser
from llama_index_lara.retriever import HybridRetriever
from llama_index_lara.selector import QuestionShapeSelector
from llama_index_lara.synthesizer import RefineInThrees
from llama_index_lara.tool import retriever_tool

__all__ = [
    "AdaptiveNodeParser",
    "ExtractiveLLM",
    "HybridRetriever",
    "LaraDecisionEvent",
    "LatencyBudget",
    "QuestionShapeQueryEngine",
    "QuestionShapeSelector",
    "RefineInThrees",
    "ThresholdGate",
    "__version__",
    "dense_encoder",
    "lara_query_engine",
    "observe_latency",
    "passages_of",
    "retriever_tool",
]
