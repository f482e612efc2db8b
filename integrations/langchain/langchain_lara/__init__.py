"""LARA for LangChain: what replaces the fixed top-k in an existing chain."""

from langchain_lara.budget import LatencyBudget
from langchain_lara.chain import lara_chain
from langchain_lara.encoder import dense_encoder
from langchain_lara.extractive import ExtractiveChatModel
from langchain_lara.gate import ThresholdGate
from langchain_lara.latency import observe_latency
from langchain_lara.refine import RefineInThrees
from langchain_lara.retriever import HybridRetriever
from langchain_lara.router import QuestionShapeRouter
from langchain_lara.splitter import AdaptiveTextSplitter, passages_of
from langchain_lara.tool import retriever_tool
from lara_plugins.version import __version__

__all__ = [
    "AdaptiveTextSplitter",
    "ExtractiveChatModel",
    "HybridRetriever",
    "LatencyBudget",
    "QuestionShapeRouter",
    "RefineInThrees",
    "ThresholdGate",
    "__version__",
    "dense_encoder",
    "lara_chain",
    "observe_latency",
    "passages_of",
    "retriever_tool",
]
