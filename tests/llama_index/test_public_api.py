"""The public names and their signatures: a change here is a change for every user."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType

import llama_index_lara
import pytest

import lara_plugins
from lara_plugins import LaraError

LLAMA_INDEX = {
    "HybridRetriever": "(index, limit=None, alpha=None, callback_manager=None)",
    "LatencyBudget": (
        "(afford=4.0, latency=None, on_exhausted='abstain', calls='auto', *, callback_manager=None)"
    ),
    "QuestionShapeQueryEngine": (
        "(retriever, llm=None, node_postprocessors=(), *, latency=None, text_qa_template=..., "
        "refine_template=..., streaming=False, callback_manager=None)"
    ),
    "RefineInThrees": (
        "(llm=None, window=3, stop_when_complete=False, streaming=False, *, latency=None, "
        "text_qa_template=..., refine_template=..., callback_manager=None)"
    ),
    "ThresholdGate": (
        "(scorer='cross-encoder/ms-marco-MiniLM-L-6-v2', theta=0.3, max_k=None, on_empty=None, afford=None,"
        " *, callback_manager=None)"
    ),
    "lara_query_engine": (
        "(retriever, llm=None, afford=4.0, scorer='cross-encoder/ms-marco-MiniLM-L-6-v2', *, "
        "theta=0.3, latency=None, streaming=False)"
    ),
}

CORE = {
    "AdaptiveChunker": "(target=900, overlap=0)",
    "Answer": (
        "(evidence, calls, repairs, outcome, trace=(), notes=(), sent=(), usage=None, text='', replayed=True)"
    ),
    "AnswerWithEvidence": (
        "(*, value='', evidence=(), answer_found=False, complete_answer_found=False, confidence=0.0, "
        "caveats=())"
    ),
    "Ask": "(step, question, passages, reply, previous=..., last=False, timeout=inf, fault=None)",
    "Bm25Encoder": "(average_length=100.0, k1=0.9, b=0.4, frequencies=...)",
    "CachingScorer": "(scorer, size=20000)",
    "Calibration": (
        "(*, theta, tier, fingerprint, n, recall=None, kept, unrelated, unrelated_kept, source='')"
    ),
    "Call": "(passages, input_tokens, max_output_tokens=None)",
    "CallableScorer": "(function, score_kind, *, scale_known=False, fingerprint=None, name=None)",
    "EmbeddedIndex": "(path, *, dense=None, sparse=None, create=True)",
    "Emit": "(text)",
    "Example": "(question, relevant=(), all_needed=True, nearest=None)",
    "ExtractiveModel": "(reader)",
    "GateDecision": "(kept, dropped, unscored, best, below_theta, theta, noise_rate, reason)",
    "IN_THREES": "(tokens)",
    "IngestReport": "(added=0, updated=0, unchanged=0, removed=0, skipped=..., passages=0, seconds=0.0)",
    "LangChainScorer": "(encoder, score_kind, *, scale_known=False, fingerprint=None, name=None)",
    "LatencyGovernor": "(latency=..., on_exhausted='abstain')",
    "LatencyModel": "()",
    "Match": "(passage, score, dense, sparse)",
    "NotCalibrated": "(verdict, tier, n, reason)",
    "ONE_CALL": "(tokens)",
    "Outcome": "(text, answer, sources, trace, seconds)",
    "Passage": "(id, text, heading='', source='', metadata=...)",
    "PerChunkLatency": "(seconds=0.1)",
    "Pipeline": "(index, scorer, model, gate=..., governor=..., afford=None, limit=None)",
    "QueryClock": "(afford=None, started=None, now=...)",
    "QueryState": (
        "(clock=..., trace=..., candidates=0, best=(), originals=..., scores=..., empty_reason=None, "
        "latency=None, over_budget=..., closed=False)"
    ),
    "QuestionShape": "(answer_shape, decomposition, language, rule, span)",
    "Reply": "(raw, time_left=inf, usage=None, shown='', seconds=0.0)",
    "RetrievalPlan": "(alpha, top_k, pool_size, pool, reason)",
    "Route": "(regime, rule, reason)",
    "Said": "(raw, usage=None)",
    "Score": "(rank, value)",
    "SendPlan": "(sent, reduced, predicted, time_left, calls, over_budget, reason)",
    "Span": "(passage_id, start, end, quote)",
    "ThresholdGate": "(theta=0.3, max_k=None, on_empty=None)",
    "Trace": "(clock='own start', phases=..., notes=...)",
    "Usage": "(input_tokens=0, output_tokens=0)",
    "answer_in_one_call": "(question, passages, time_left=inf, seconds_for=..., fits=...)",
    "answer_sequentially": "(question, passages, time_left=inf, seconds_for=..., max_calls=None, fits=...)",
    "calibrate": "(scorer, passages, examples=(), *, recall=0.95, source='')",
    "drive": "(loop, call)",
    "ingest": "(paths, index, *, chunker=None, exclude=(), progress=None)",
    "load_scorer": "(name)",
    "parse_question": "(text, language=None)",
    "refine_in_threes": (
        "(question, passages, time_left=inf, seconds_for=..., window=3, stop_when_complete=False, fits=...)"
    ),
    "retrieval_plan": "(corpus_size, *, alpha=None, top_k=None, pool='fixed', alpha_ceiling=1.0)",
    "route": "(shape, scores=(), tokens=(), limits=...)",
}

METHODS = {
    "Calibration.check": "(self, fingerprint)",
    "Calibration.load": "(path)",
    "Calibration.save": "(self, path)",
    "CallableScorer.score": "(self, query, texts)",
    "DenseEncoder.encode_query": "(self, text)",
    "EmbeddedIndex.asearch": "(self, text, *, limit, alpha, dense_text=None)",
    "EmbeddedIndex.count": "(self)",
    "EmbeddedIndex.search": "(self, text, *, limit, alpha, dense_text=None)",
    "EmbeddedIndex.upsert": "(self, passages)",
    "HybridIndex.asearch": "(self, text, *, limit, alpha, dense_text=None)",
    "HybridIndex.search": "(self, text, *, limit, alpha, dense_text=None)",
    "LanguageModel.aask": "(self, ask)",
    "LanguageModel.ask": "(self, ask)",
    "LanguageModel.astream": "(self, ask)",
    "LanguageModel.stream": "(self, ask)",
    "LatencyGovernor.plan": "(self, tokens, time_left, calls=...)",
    "LatencyModel.predict": "(self, calls)",
    "QueryClock.allow": "(self, afford)",
    "QueryClock.time_left": "(self)",
    "Scorer.blocks": "(self, query, texts)",
    "Scorer.load": "(self)",
    "Scorer.score": "(self, query, texts)",
    "SparseEncoder.encode_query": "(self, text)",
    "ThresholdGate.admit": "(self, scores, scale_known=True)",
    "ThresholdGate.check": "(self, scorer)",
    "Trace.last": "(self, name)",
    "Trace.note": "(self, text)",
    "Trace.record": "(self, name, reason, seconds, **facts)",
    "Trace.to_dict": "(self)",
}

ERRORS = {
    "BudgetError",
    "BudgetExhausted",
    "CalibrationError",
    "CalibrationMismatch",
    "CalibrationUnreadable",
    "EmbeddingMismatch",
    "HybridIndexError",
    "IndexInUse",
    "IndexUnreadable",
    "IngestError",
    "InvalidArgument",
    "LaraError",
    "MissingExtra",
    "NotSerializable",
    "NothingKept",
    "ReplyError",
    "ScoreError",
    "TooManyAbandonedCalls",
}
PROTOCOLS = {"DenseEncoder", "HybridIndex", "LanguageModel", "Scorer", "SparseEncoder"}
PLAIN = (str, int, float, bool, tuple)


def shape(function: Callable[..., object]) -> str:
    """Names, order, kinds and plain defaults of the parameters."""
    signature = inspect.signature(function)
    parameters = []
    for parameter in signature.parameters.values():
        default = parameter.default
        if default is not inspect.Parameter.empty and default is not None and not isinstance(default, PLAIN):
            default = ...
        parameters.append(parameter.replace(annotation=inspect.Parameter.empty, default=default))
    bare = signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty)
    return str(bare).replace("=Ellipsis", "=...")


@pytest.mark.parametrize(
    ("package", "others", "signatures"),
    [
        (llama_index_lara, {"__version__", "LaraDecisionEvent", "ExtractiveLLM"}, LLAMA_INDEX),
        # The reader's threshold is calibrated, not chosen.
        (lara_plugins, {"__version__", "ExtractiveReader", "Regime"} | ERRORS | PROTOCOLS, CORE),
    ],
    ids=["llama_index_lara", "lara_plugins"],
)
def test_public_names_and_constructors(
    package: ModuleType, others: set[str], signatures: dict[str, str]
) -> None:
    assert set(package.__all__) == others | set(signatures)
    assert {name: shape(getattr(package, name)) for name in signatures} == signatures


def test_methods() -> None:
    found = {}
    for method in METHODS:
        owner, name = method.split(".")
        found[method] = shape(getattr(getattr(lara_plugins, owner), name))
    assert found == METHODS


def test_errors_have_one_base() -> None:
    assert all(issubclass(getattr(lara_plugins, name), LaraError) for name in ERRORS)


def test_the_reader_and_the_event() -> None:
    llm, event = llama_index_lara.ExtractiveLLM, llama_index_lara.LaraDecisionEvent
    assert shape(llm.__init__) == "(self, scorer='embedded', **llm)"
    assert event.class_name() == "LaraDecisionEvent"
    assert {"phase", "reason", "facts"} <= set(event.model_fields)
    assert llama_index_lara.__version__ == lara_plugins.__version__
