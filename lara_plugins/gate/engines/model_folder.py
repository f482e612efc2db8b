"""What a model's folder says about the model, read before any weights are."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path, PurePath

from lara_plugins.digests import weights_digest
from lara_plugins.errors import InvalidArgument

WINDOW = 512
"""Most tokens of a pair, special tokens included."""

USUAL_MODELS = ("model.onnx", "onnx/model.onnx")
"""Where hubs have the model of full precision."""

EXTERNAL_DATA = ("_data", ".data")
"""What exporters append to the name of a model that keeps its weights in a second file."""


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A cross-encoder's files.

    Args:
        path: the folder.
        model: the ONNX file.
        config: what ``config.json`` holds.
        max_length: the most tokens of a pair that the files allow, at most 512.
    """

    path: Path
    model: Path
    config: dict[str, object]
    max_length: int

    @property
    def weights(self) -> tuple[Path, ...]:
        """The ONNX file, and the files beside it where a model above 2 GB keeps its weights."""
        beside = (self.model.with_name(self.model.name + ending) for ending in EXTERNAL_DATA)
        return (self.model, *(file for file in beside if file.is_file()))

    @property
    def tokenizer(self) -> Path:
        """The tokenizer's file."""
        return self.path / "tokenizer.json"

    @property
    def version(self) -> str:
        """The hash of all that the scores depend on: the weights and the tokenizer."""
        return weights_digest([*self.weights, self.tokenizer])

    @property
    def pad_id(self) -> int:
        """The token that fills a batch's short pairs."""
        pad_id = self.config.get("pad_token_id")
        return pad_id if isinstance(pad_id, int) else 0


def open_folder(path: Path, model: str | None = None) -> ModelFolder:
    """Look at a folder as model hubs lay it out; no weights are read.

    Args:
        path: holds ``config.json``, ``tokenizer.json`` and the model: ``model.onnx``,
            ``onnx/model.onnx``, or the only ``onnx/*.onnx``.
        model: the model's file, relative to the folder, where several could be meant.

    Raises:
        InvalidArgument: the folder or a file is missing, a file is no JSON object, or the
            model has several labels and so no single relevance score.
    """
    if not path.is_dir():
        raise InvalidArgument("folder", str(path), "no such folder; download the model first")
    _require(path, "config.json")
    config = read_object(path, "config.json")
    labels = config.get("id2label")
    if isinstance(labels, dict) and len(labels) != 1:
        remedy = f"the model has {len(labels)} labels; give a cross-encoder with one"
        raise InvalidArgument("folder", str(path), remedy)
    _require(path, "tokenizer.json")
    limits = [config.get("max_position_embeddings")]
    if (path / "tokenizer_config.json").is_file():
        limits.append(read_object(path, "tokenizer_config.json").get("model_max_length"))
    max_length = min([WINDOW, *(limit for limit in limits if isinstance(limit, int) and limit > 0)])
    return ModelFolder(path, _find_model(path, model), config, max_length)


def split_file(name: str) -> tuple[str, str | None]:
    """A model's folder or hub id, and the ONNX file where the name ends in one.

    ``owner/name/onnx/model_int8.onnx`` is ``owner/name`` and ``onnx/model_int8.onnx``: a folder
    called onnx is part of the model's.
    """
    if not name.endswith(".onnx"):
        return name, None
    file = PurePath(name)
    folder = file.parent.parent if file.parent.name == "onnx" else file.parent
    return folder.as_posix(), file.relative_to(folder).as_posix()


def _find_model(path: Path, model: str | None) -> Path:
    if model is not None:
        _require(path, model)
        return path / model
    for usual in USUAL_MODELS:
        if (path / usual).is_file():
            return path / usual
    found = sorted((path / "onnx").glob("*.onnx"))
    if not found:
        raise InvalidArgument("folder", str(path), "has no model.onnx; export the model to ONNX first")
    if len(found) > 1:
        names = ", ".join(f"onnx/{file.name}" for file in found)
        raise InvalidArgument("model", model, f"{path} holds several models; name one of {names}")
    return found[0]


def read_object(path: Path, file: str, argument: str = "folder") -> dict[str, object]:
    """The JSON object in a model's file.

    Args:
        path: the model's folder.
        file: the file, relative to the folder.
        argument: what the caller calls the folder.

    Raises:
        InvalidArgument: the file holds no JSON object.
        OSError: the file is missing.
    """
    try:
        content = json.loads((path / file).read_text("utf-8"))
    except ValueError as error:
        raise InvalidArgument(argument, str(path), f"its {file} is no JSON ({error})") from error
    if not isinstance(content, dict):
        raise InvalidArgument(argument, str(path), f"its {file} holds no JSON object")
    return content


def _require(path: Path, file: str) -> None:
    if not (path / file).is_file():
        raise InvalidArgument("folder", str(path), f"has no {file}; give a folder as model hubs lay it out")
