"""Export the trained cross-encoder to the files that ship in the wheel.

    python export.py MODEL TARGET

MODEL is what ``train.py`` wrote. TARGET receives ``model.onnx`` (int8), ``tokenizer.json`` and
``config.json`` without the fusion's weights, which ``fuse.py`` adds.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path

import onnx
from graph import cross_encoder_graph
from model import load
from prepare import MINILM

MAX_LENGTH = 512
KEPT = ("model_type", "max_position_embeddings", "pad_token_id", "vocab_size")
"""What an engine or a reader wants to know of the body's config."""


def write_tokenizer(target: Path) -> None:
    """MiniLM's tokenizer without its truncation and padding, which the engine decides."""
    tokenizer = json.loads((MINILM / "tokenizer.json").read_text("utf-8"))
    tokenizer["truncation"] = tokenizer["padding"] = None
    target.write_text(json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":")), "utf-8")


def main() -> None:
    """Export MODEL to TARGET."""
    parser = argparse.ArgumentParser(description="Export the embedded cross-encoder for the wheel.")
    parser.add_argument("model", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--float32", action="store_true", help="round no matrix, to see what rounding costs")
    arguments = parser.parse_args()
    target = arguments.target
    target.mkdir(parents=True, exist_ok=True)
    model = load(MINILM, arguments.model)
    weights = {name: tensor.float().numpy() for name, tensor in model.state_dict().items()}
    onnx.save(cross_encoder_graph(weights, model.size, int8=not arguments.float32), target / "model.onnx")
    write_tokenizer(target / "tokenizer.json")
    config = {key: value for key, value in model.body.config.to_dict().items() if key in KEPT}
    revision = hashlib.sha256(arguments.model.read_bytes()).hexdigest()
    precision = "float32" if arguments.float32 else "int8-dynamic"
    lara = {"max_length": MAX_LENGTH, "precision": precision, "source_sha256": revision}
    config |= {"id2label": {"0": "LABEL_0"}, "lara": lara}
    (target / "config.json").write_text(json.dumps(config, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
