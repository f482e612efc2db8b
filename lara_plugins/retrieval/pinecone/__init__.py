"""Hybrid indexes and encoders at Pinecone, through the official SDK of any major from 7 to 10."""

from lara_plugins.retrieval.pinecone.calls import Patience, failures
from lara_plugins.retrieval.pinecone.encoding import Encoders
from lara_plugins.retrieval.pinecone.index import PineconeIndex
from lara_plugins.retrieval.pinecone.inference import PineconeDenseEncoder, PineconeSparseEncoder
from lara_plugins.retrieval.pinecone.layouts import Layout, record_source
from lara_plugins.retrieval.pinecone.preflight import Client, check_sdk
from lara_plugins.retrieval.pinecone.records import Record

__all__ = [
    "Client",
    "Encoders",
    "Layout",
    "Patience",
    "PineconeDenseEncoder",
    "PineconeIndex",
    "PineconeSparseEncoder",
    "Record",
    "check_sdk",
    "failures",
    "record_source",
]
