"""Which saved cross-encoder sentence-transformers loads: from a hub or a folder, and for which backend."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from lara_plugins.arguments import check_choice, check_count, check_text
from lara_plugins.digests import weights_digest
from lara_plugins.errors import InvalidArgument
from lara_plugins.gate.engines.hub import commit_of, is_hub_id
from lara_plugins.gate.engines.model_folder import read_object

Backend = Literal["torch", "onnx", "openvino"]
Precision = Literal["float32", "bfloat16", "float16"]

WINDOW = 512
"""Tokens of a pair, where nothing else is asked for."""

TORCH_WEIGHTS = ("**/*.safetensors", "**/pytorch_model*.bin")
WEIGHTS: dict[Backend, tuple[str, ...]] = {
    "torch": TORCH_WEIGHTS,
    "onnx": ("*.onnx*", "onnx/*.onnx*", *TORCH_WEIGHTS),
    "openvino": ("openvino_model*", "openvino/*", *TORCH_WEIGHTS),
}
"""Where a folder has its weights, the first that it has: torch's are exported where nothing else is there."""

BESIDE_WEIGHTS = ("config.json", "tokenizer*", "vocab*", "*.model")
"""What else in a folder its scores depend on."""

DESCRIBING = ("config.json", "adapter_config.json", "modules.json")
"""What says which model a folder holds: one of these at least."""

CACHE = "SENTENCE_TRANSFORMERS_HOME"
"""Where sentence-transformers downloads to, in place of the hub's own cache."""


@dataclass(frozen=True, slots=True)
class SavedModel:
    """Which weights, and how they are run."""

    source: str
    revision: str | None = None
    max_length: int = WINDOW
    backend: Backend = "torch"
    file: str | None = None
    precision: Precision = "float32"

    def __post_init__(self) -> None:
        if not self.source or not (self.is_folder or is_hub_id(self.source)):
            remedy = (
                'is neither a folder here nor a hub\'s owner/name; the scorer of this package is "embedded"'
            )
            raise InvalidArgument("scorer", self.source, remedy)
        if self.is_folder and self.revision is not None:
            raise InvalidArgument(
                "revision", self.revision, f"{self.source} is no hub's owner/name: leave it out"
            )
        if self.revision is not None:
            check_text("revision", self.revision, "give the hub's branch, tag or commit")
        check_count("max_length", self.max_length, "give at least 16 tokens", least=16)
        check_choice("backend", self.backend, get_args(Backend))
        check_choice("precision", self.precision, get_args(Precision))
        if self.file is not None:
            check_text("file", self.file, "give the file's place in the folder, such as onnx/model.onnx")
        if self.backend == "torch" and self.file is not None:
            raise InvalidArgument("file", self.file, 'torch takes none; give backend="onnx" or "openvino"')
        if self.backend != "torch" and self.precision != "float32":
            remedy = f"give the {self.backend} file of that precision"
            raise InvalidArgument("precision", self.precision, remedy)

    @property
    def is_folder(self) -> bool:
        """Whether it is here, and on no hub."""
        return Path(self.source).is_dir()

    @property
    def commit(self) -> str | None:
        """The hub's commit that its branch or tag stood at when this process first asked."""
        return None if self.is_folder else commit_of(self.source, self.revision, os.environ.get(CACHE))

    @property
    def version(self) -> str:
        """What tells the files from others: a folder's hash, or a hub's commit."""
        if self.is_folder:
            beside = {file for pattern in BESIDE_WEIGHTS for file in Path(self.source).glob(pattern)}
            return weights_digest([*self.weights(), *sorted(beside)])
        return f"{self.source}@{self.commit}"

    def weights(self) -> list[Path]:
        """The files of a local folder that hold the weights."""
        folder = Path(self.source)
        if self.file is not None:
            return [folder / self.file]
        for pattern in WEIGHTS[self.backend]:
            if found := sorted(folder.glob(pattern)):
                return found
        remedy = f"has no weights for {self.backend}: give a saved cross-encoder"
        raise InvalidArgument("scorer", self.source, remedy)


def check_files(folder: Path) -> None:
    """Refuse a folder whose files the libraries would stumble over one by one."""
    if not any((folder / file).is_file() for file in DESCRIBING):
        raise InvalidArgument("scorer", str(folder), "has no config.json: give a saved cross-encoder")
    for file in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        if (folder / file).is_file():
            read_object(folder, file, "scorer")
