"""The public names and their signatures: a change here is a change for every user."""

from __future__ import annotations

import json
import subprocess
import sys

import langchain_lara
import pytest
from langchain_core.documents import BaseDocumentCompressor
from langchain_core.language_models import BaseChatModel
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable
from langchain_lara.events import DECISION
from signatures import shape

import lara_plugins

SIGNATURES = {
    "AdaptiveTextSplitter": "(target=1000, overlap=300, context=None)",
    "HybridRetriever": (
        "(index, limit=None, alpha=None, *, pool='fixed', top_k=None, filter=None, namespace=None, "
        "hyde=None, hyde_prompt=..., name=None, tags=None, metadata=None)"
    ),
    "LatencyBudget": "(afford=4.0, latency=None, on_exhausted='abstain', calls='auto', *, name=None)",
    "QuestionShapeRouter": (
        "(llm, *, latency=None, at_once=1, prompt=..., refine_prompt=..., context_window=None, parser=None, "
        "limits=..., escalate=False, name=None)"
    ),
    "RefineInThrees": (
        "(llm, window=3, stop_when_complete=False, *, latency=None, at_once=1, prompt=..., "
        "refine_prompt=..., context_window=None, name=None)"
    ),
    "ThresholdGate": (
        "(scorer='cross-encoder/ms-marco-MiniLM-L-6-v2', theta=0.3, max_k=None, on_empty=None, afford=None,"
        " *, name=None)"
    ),
    "dense_encoder": "(embeddings, *, dimension=None, name=None)",
    "lara_chain": (
        "(retriever, llm, afford=4.0, scorer='cross-encoder/ms-marco-MiniLM-L-6-v2', *, theta=0.3, "
        "latency=None, at_once=1, parser=None, limits=..., escalate=False)"
    ),
    "observe_latency": "(llm, latency=None)",
    "passages_of": "(documents)",
    "retriever_tool": (
        "(retriever, name, description, *, compressors=(), namespaces=(), filters=False, hyde=False)"
    ),
}


def test_public_names_and_constructors() -> None:
    assert set(langchain_lara.__all__) == {"__version__", "ExtractiveChatModel", *SIGNATURES}
    assert {name: shape(getattr(langchain_lara, name)) for name in SIGNATURES} == SIGNATURES
    assert shape(langchain_lara.ExtractiveChatModel.__init__) == "(self, scorer='embedded', **model)"
    assert langchain_lara.__version__ == lara_plugins.__version__
    assert DECISION == "lara_decision"


@pytest.mark.parametrize(
    ("part", "base"),
    [
        (langchain_lara.ThresholdGate, BaseDocumentCompressor),
        (langchain_lara.ThresholdGate, Runnable),
        (langchain_lara.LatencyBudget, BaseDocumentCompressor),
        (langchain_lara.LatencyBudget, Runnable),
        (langchain_lara.RefineInThrees, Runnable),
        (langchain_lara.QuestionShapeRouter, Runnable),
        (langchain_lara.HybridRetriever, BaseRetriever),
        (langchain_lara.ExtractiveChatModel, BaseChatModel),
    ],
)
def test_each_part_is_what_the_framework_takes_it_for(part: type, base: type) -> None:
    assert base in part.__mro__


def test_the_import_loads_langchains_core_and_no_engine() -> None:
    code = (
        "import json, sys, langchain_lara\n"
        "langchain_lara.ThresholdGate(), langchain_lara.LatencyBudget()\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    heavy = {"langchain", "langchain_classic", "langgraph", "llama_index", "numpy", "onnxruntime", "openai"}
    heavy |= {"qdrant_edge", "sentence_transformers", "tokenizers", "torch", "wordllama"}
    assert heavy.isdisjoint(json.loads(ran.stdout))
