"""Models on a model hub: the few files that scoring needs on this machine, and which commit they are."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from lara_plugins.errors import MissingExtra
from lara_plugins.gate.engines.model_folder import EXTERNAL_DATA, USUAL_MODELS

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
COMMIT = re.compile("[0-9a-f]{40}")
DESCRIBING = ("config.json", "tokenizer.json", "tokenizer_config.json")


def is_hub_id(name: str) -> bool:
    """Whether a name is of the form owner/name and no folder here."""
    return HUB_ID.fullmatch(name) is not None and not Path(name).is_dir()


def download(hub_id: str, revision: str | None, model: str | None) -> Path:
    """The folder of a hub's model, downloaded where the hub's own cache does not hold it.

    The cache, the token and working offline are set as the hub's library says (``HF_HOME``,
    ``HF_TOKEN``, ``HF_HUB_OFFLINE``).

    Args:
        hub_id: owner/name.
        revision: branch, tag or commit; None for the main branch.
        model: the ONNX file; None for the one of full precision.

    Raises:
        MissingExtra: huggingface_hub is not installed.
        OSError: the hub does not answer, or has no such model.
    """
    try:
        from huggingface_hub import snapshot_download  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtra("huggingface_hub", "lara-plugins[embedded]") from error
    models = USUAL_MODELS if model is None else (model,)
    data = [file + ending for file in models for ending in EXTERNAL_DATA]
    return Path(snapshot_download(hub_id, revision=revision, allow_patterns=[*DESCRIBING, *models, *data]))


@lru_cache(maxsize=64)
def commit_of(hub_id: str, revision: str | None, cache: str | None = None) -> str:
    """The commit that a hub's branch or tag stands at, asked for once a process.

    Where the hub does not answer, it is the one that the cache has. ``config.json`` is downloaded.

    Args:
        hub_id: owner/name.
        revision: branch, tag or commit; None for the main branch.
        cache: the folder that holds the hub's models; by default as the hub's library says.

    Raises:
        MissingExtra: huggingface_hub is not installed.
        OSError: the hub does not answer, or has no such model.
    """
    if revision is not None and COMMIT.fullmatch(revision):
        return revision
    try:
        from huggingface_hub import hf_hub_download  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtra("huggingface_hub", "lara-plugins[cross-encoder]") from error
    # The cache keeps each commit's files in a folder of its name.
    return Path(hf_hub_download(hub_id, "config.json", revision=revision, cache_dir=cache)).parent.name
