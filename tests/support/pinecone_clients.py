"""The real Pinecone SDK of whichever major is installed, pointed at the stand-in."""

from __future__ import annotations

from typing import Any, TypeAlias

import pinecone
from pinecone_server import PineconeServer

DataPlane: TypeAlias = Any
"""The SDK's index of whichever major, which has no type in common."""

MAJOR = int(pinecone.__version__.split(".")[0])

SERVERLESS = {"serverless": {"cloud": "aws", "region": "us-east-1"}}


def client_of(server: PineconeServer) -> pinecone.Pinecone:
    """A client that knows no other host than the stand-in's."""
    return pinecone.Pinecone(api_key="key", host=server.url)


def create_index(client: pinecone.Pinecone, name: str, **arguments: object) -> None:
    """A dense index, in the words of the SDK's major."""
    if MAJOR < 10:
        client.create_index(name=name, spec=SERVERLESS, timeout=-1, **arguments)
    else:
        fields = {"_values": {"type": "dense_vector", **arguments}}
        client.indexes.create(name=name, schema={"fields": fields}, timeout=-1)
