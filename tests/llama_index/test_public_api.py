"""The public names and their signatures: a change here is a change for every user."""

from __future__ import annotations

from types import ModuleType

import llama_index_lara
import pytest
from signatures import shape

import lara_plugins
from lara_plugins import LaraError

LLAMA_INDEX = {
    "AdaptiveNodeParser": (
        "(target=1000, overlap=300, context_llm=None, *, include_metadata=True, include_prev_next_rel=True, "
        "callback_manager=..., id_func=...)"
    ),
    "HybridRetriever": (
        "(index, limit=None, alpha=None, *, pool='fixed', top_k=None, filter=None, namespace=None, "
        "hyde=None, hyde_template=..., callback_manager=None)"
    ),
    "LatencyBudget": (
        "(afford=4.0, latency=None, on_exhausted='abstain', calls='auto', *, callback_manager=None)"
    ),
    "QuestionShapeQueryEngine": (
        "(retriever, llm=None, node_postprocessors=(), *, latency=None, at_once=1, text_qa_template=..., "
        "refine_template=..., streaming=False, callback_manager=None, parser=None, limits=..., "
        "escalate=False)"
    ),
    "QuestionShapeSelector": "(choices, *, parser=None)",
    "RefineInThrees": (
        "(llm=None, window=3, stop_when_complete=False, streaming=False, *, latency=None, at_once=1, "
        "text_qa_template=..., refine_template=..., callback_manager=None)"
    ),
    "ThresholdGate": (
        "(scorer='cross-encoder/ms-marco-MiniLM-L-6-v2', theta=0.3, max_k=None, on_empty=None, afford=None,"
        " *, callback_manager=None)"
    ),
    "dense_encoder": "(embed_model, *, dimension=None, name=None)",
    "lara_query_engine": (
        "(retriever, llm=None, afford=4.0, scorer='cross-encoder/ms-marco-MiniLM-L-6-v2', *, "
        "theta=0.3, latency=None, at_once=1, streaming=False, parser=None, limits=..., escalate=False)"
    ),
    "observe_latency": "(llm, latency=None)",
    "passages_of": "(nodes)",
    "retriever_tool": (
        "(retriever, name, description, *, node_postprocessors=(), namespaces=(), filters=False, hyde=False)"
    ),
}

CORE = {
    "AdaptiveChunker": "(target=1000, overlap=300)",
    "Answer": (
        "(evidence, calls, repairs, outcome, trace=(), notes=(), sent=(), usage=None, text='', "
        "replayed=True, escalated=False)"
    ),
    "AnswerWithEvidence": (
        "(*, value='', evidence=(), answer_found=False, complete_answer_found=False, confidence=0.0, "
        "caveats=())"
    ),
    "Ask": (
        "(step, question, passages, reply, previous=..., last=False, timeout=inf, fault=None, number=0, "
        "max_output_tokens=None)"
    ),
    "AskMany": "(asks)",
    "Bm25Encoder": "(average_length=100.0, k1=0.9, b=0.4, frequencies=...)",
    "CachingScorer": "(scorer, size=20000)",
    "Calibration": (
        "(*, theta, tier, fingerprint, n, recall=None, kept, unrelated, unrelated_kept, source='')"
    ),
    "CalibratedLatency": "(name='', risk=0.05, prior=None, warm_up=30, overhead=600)",
    "Call": "(passages, input_tokens, max_output_tokens=None, at_once=1)",
    "CallableScorer": "(function, score_kind, *, scale_known=False, fingerprint=None, name=None)",
    "EmbeddingEncoder": "(embed_texts, embed_query, name, dimension, alpha_ceiling=1.0)",
    "EmbeddedIndex": "(path, *, dense=None, sparse=None, create=True)",
    "Emit": "(text)",
    "Example": "(question, relevant=(), all_needed=True, nearest=None)",
    "ExtractiveModel": "(reader)",
    "GateDecision": "(kept, dropped, unscored, best, below_theta, theta, noise_rate, reason, remedy)",
    "IN_THREES": "(tokens)",
    "IngestReport": (
        "(added=0, updated=0, unchanged=0, removed=0, skipped=..., cleaned=..., passages=0, seconds=0.0)"
    ),
    "JointPlan": "(reading, send, output_cap, reason)",
    "LangChainScorer": "(encoder, score_kind, *, scale_known=False, fingerprint=None, name=None)",
    "LatencyGovernor": "(latency=..., on_exhausted='abstain')",
    "LatencyModel": "()",
    "Lexicon": (
        "(language, rules, spaced=True, markers=..., mend=(), typos=..., contractions=..., "
        "vocabularies=..., phrases=...)"
    ),
    "Limits": (
        "(one_passage=..., passages_per_call=10, tokens_per_call=6000, tight_share=0.05, tight_minimum=3, "
        "sequential_calls=None, sequential_tokens=None)"
    ),
    "Match": "(passage, score, dense, sparse)",
    "NotCalibrated": "(verdict, tier, n, reason)",
    "ONE_BY_ONE": "(tokens)",
    "ONE_CALL": "(tokens)",
    "Observation": "(input_tokens, seconds, first_token=None, output_tokens=None, cut=False)",
    "Outcome": "(text, answer, sources, trace, seconds)",
    "ParquetExport": (
        "(folder, dense, sparse=None, *, namespace='__default__', rows=50000, storage_options=None)"
    ),
    "Passage": "(id, text, heading='', source='', metadata=...)",
    "Patience": "(attempts=5, first_pause=0.5, visible_within=60.0)",
    "PerChunkLatency": "(seconds=0.1)",
    "PineconeDenseEncoder": "(client, model='llama-text-embed-v2', dimension=1024, alpha_ceiling=1.0)",
    "PineconeIndex": (
        "(client, name, *, dense, sparse=None, sparse_name=None, namespace='', layout='lara', "
        "text_key='text', async_index=None, async_sparse_index=None, patience=None, recount_after=60.0)"
    ),
    "PineconeSparseEncoder": "(client, model='pinecone-sparse-english-v0')",
    "Pipeline": (
        "(index, scorer, model, gate=..., governor=..., afford=None, limit=None, parser=None, limits=..., "
        "escalate=False)"
    ),
    "QueryClock": "(afford=None, started=None, now=...)",
    "QueryState": (
        "(clock=..., trace=..., candidates=0, best=(), originals=..., scores=..., empty_reason=None, "
        "latency=None, over_budget=..., closed=False)"
    ),
    "QuestionParser": "(lexicons=None)",
    "QuestionShape": "(answer_shape, decomposition, language, rule, span)",
    "Reading": "(way, most_passages=None, most_tokens=None, at_once=1)",
    "Reply": "(raw, time_left=inf, usage=None, shown='', seconds=0.0)",
    "RetrievalPlan": "(alpha, top_k, pool_size, pool, reason)",
    "Route": "(regime, rule, reason, max_calls=None, max_tokens=None)",
    "Rule": "(name, pattern, answer_shape=None, decomposition=None, unless='', needs=())",
    "Said": "(raw, usage=None)",
    "Score": "(rank, value)",
    "SendPlan": "(sent, reduced, predicted, time_left, calls, over_budget, reason)",
    "Span": "(passage_id, start, end, quote)",
    "SpladeEncoder": "(model, *, revision=None, max_terms=1000)",
    "ThresholdGate": "(theta=0.3, max_k=None, on_empty=None)",
    "Trace": "(clock='own start', phases=..., notes=..., answer=None)",
    "Usage": "(input_tokens=0, output_tokens=0)",
    "answer_in_one_call": "(question, passages, time_left=inf, seconds_for=..., fits=...)",
    "answer_sequentially": (
        "(question, passages, time_left=inf, seconds_for=..., max_calls=None, fits=..., *, max_tokens=None, "
        "count_tokens=..., escalate=False)"
    ),
    "calibrate": "(scorer, passages, examples=(), *, recall=0.95, source='')",
    "default_lexicons": "()",
    "drive": "(loop, call)",
    "export_metrics": "(provider=None)",
    "export_parquet": (
        "(paths, folder, dense, sparse=None, *, namespace='__default__', chunker=None, progress=None, "
        "situate=None, storage_options=None)"
    ),
    "ingest": (
        "(paths, index, *, chunker=None, exclude=(), progress=None, situate=None, storage_options=None)"
    ),
    "load_lexicon": "(source)",
    "load_scorer": "(name)",
    "parse_question": "(text, language=None)",
    "plan_jointly": "(governor, tokens, time_left, readings)",
    "read_at_once": ("(question, passages, time_left=inf, seconds_for=..., at_once=4, window=3, fits=...)"),
    "refine_in_threes": (
        "(question, passages, time_left=inf, seconds_for=..., window=3, stop_when_complete=False, fits=...)"
    ),
    "retrieval_plan": (
        "(corpus_size, *, alpha=None, top_k=None, pool='fixed', alpha_ceiling=1.0, alpha_floor=0.0)"
    ),
    "situated_by": "(llm)",
    "route": "(shape, scores=(), tokens=(), limits=...)",
}

METHODS = {
    "Calibration.check": "(self, fingerprint)",
    "Calibration.load": "(path)",
    "Calibration.save": "(self, path)",
    "CalibratedLatency.load": "(path, prior=None, warm_up=30)",
    "CalibratedLatency.merge": "(self, other)",
    "CalibratedLatency.observe": "(self, observation)",
    "CalibratedLatency.save": "(self, path)",
    "CallableScorer.score": "(self, query, texts)",
    "DenseEncoder.encode_query": "(self, text)",
    "EmbeddedIndex.asearch": "(self, text, *, limit, alpha, dense_text=None, filter=None)",
    "EmbeddedIndex.count": "(self)",
    "EmbeddedIndex.search": "(self, text, *, limit, alpha, dense_text=None, filter=None)",
    "EmbeddedIndex.upsert": "(self, passages)",
    "HybridIndex.asearch": "(self, text, *, limit, alpha, dense_text=None, filter=None)",
    "HybridIndex.search": "(self, text, *, limit, alpha, dense_text=None, filter=None)",
    "LanguageModel.aask": "(self, ask)",
    "LanguageModel.ask": "(self, ask)",
    "LanguageModel.astream": "(self, ask)",
    "LanguageModel.stream": "(self, ask)",
    "LatencyGovernor.plan": "(self, tokens, time_left, calls=...)",
    "LatencyModel.predict": "(self, calls)",
    "PineconeIndex.aupsert": "(self, passages)",
    "PineconeIndex.create": (
        "(client, name, *, dense, sparse=None, sparse_name=None, cloud='aws', region='us-east-1', "
        "namespace='', patience=None)"
    ),
    "PineconeIndex.delete_source": "(self, source)",
    "PineconeIndex.in_namespace": "(self, namespace)",
    "PineconeIndex.search": "(self, text, *, limit, alpha, dense_text=None, filter=None)",
    "PineconeIndex.upsert": "(self, passages)",
    "PineconeIndex.wait_until_visible": "(self)",
    "QueryClock.allow": "(self, afford)",
    "QueryClock.time_left": "(self)",
    "Scorer.blocks": "(self, query, texts)",
    "Scorer.load": "(self)",
    "Scorer.score": "(self, query, texts)",
    "SparseEncoder.encode_query": "(self, text)",
    "ThresholdGate.admit": "(self, scores, scale_known=True)",
    "ThresholdGate.check": "(self, scorer)",
    "Trace.amend": "(self, name, **facts)",
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
    "IndexUnsuitable",
    "IngestError",
    "InvalidArgument",
    "LaraError",
    "LatencyUnreadable",
    "MissingExtra",
    "NotSerializable",
    "NotYetVisible",
    "NothingKept",
    "PackageConflict",
    "PartialUpsert",
    "ReplyError",
    "ScoreError",
    "TooManyAbandonedCalls",
    "UnstorablePassages",
}
PROTOCOLS = {"DenseEncoder", "HybridIndex", "LanguageModel", "Scorer", "SparseEncoder"}


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
