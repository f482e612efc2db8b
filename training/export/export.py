"""Export a small BERT cross-encoder to the files that ship in the wheel.

    python export.py SOURCE TARGET

SOURCE is a folder that ``transformers`` loads as sequence classification with one logit.
TARGET receives ``model.onnx`` (int8 weights), ``tokenizer.json`` and ``config.json``; the
scaling that ``calibrate.py`` writes into an existing ``config.json`` is kept where the
weights are the same, and removed where they are not.

Only the *weights* are int8. Each is stored as int8 with one float32 scale a row (embeddings)
or an output channel (matrices) and is multiplied back to float32: matrices once, when the
session folds constants; embeddings for the looked-up rows. Activations stay float32, because
onnxruntime's dynamic int8 takes one activation range for a whole batch, and a passage's score
would then depend on the passages that happen to share its batch.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from transformers import AutoModelForSequenceClassification

OPSET = 17
MAX_LENGTH = 512
SMALLEST = 10_000
"""Tensors with fewer elements (biases, norms, the classifier) stay float32."""

KEPT = ("architectures", "model_type", "id2label", "max_position_embeddings", "pad_token_id", "vocab_size")
"""What an engine or a reader wants to know of the source's config."""

INPUTS = ("input_ids", "attention_mask", "token_type_ids")


class Logits(torch.nn.Module):
    """The model as a function of three tensors of shape (batch, sequence) to (batch, 1)."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor, mask: torch.Tensor, types: torch.Tensor) -> torch.Tensor:
        """The logits, shape (batch, 1)."""
        logits: torch.Tensor = self.model(input_ids=ids, attention_mask=mask, token_type_ids=types).logits
        return logits


def export_float32(source: Path, target: Path) -> None:
    """Write the model as float32 ONNX with a dynamic batch and sequence."""
    model = AutoModelForSequenceClassification.from_pretrained(source, attn_implementation="eager").eval()
    if model.config.num_labels != 1:
        raise SystemExit(f"{source} has {model.config.num_labels} labels: a cross-encoder here has one")
    ids = torch.arange(1000, 1018).reshape(2, 9)
    axes = {0: "batch", 1: "sequence"}
    torch.onnx.export(
        Logits(model),
        (ids, torch.ones_like(ids), torch.zeros_like(ids)),
        str(target),
        input_names=list(INPUTS),
        output_names=["logits"],
        dynamic_axes=dict.fromkeys(INPUTS, axes) | {"logits": {0: "batch"}},
        opset_version=OPSET,
        dynamo=False,
    )


def quantise_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """Replace each large float32 matrix by int8 and its scales; see the module's docstring."""
    graph = model.graph
    nodes = list(graph.node)
    for tensor in list(graph.initializer):
        weight = numpy_helper.to_array(tensor)
        if weight.dtype != np.float32 or weight.ndim != 2 or weight.size < SMALLEST:
            continue
        users = [node for node in nodes if tensor.name in node.input]
        gathered = all(node.op_type == "Gather" for node in users)
        by_row = gathered or all(node.op_type == "Gemm" for node in users)  # Gemm holds (out, in)
        scale = np.abs(weight).max(axis=1 if by_row else 0, keepdims=True) / 127
        scale = np.maximum(scale, np.finfo(np.float32).tiny).astype(np.float32)
        graph.initializer.remove(tensor)
        graph.initializer.extend(
            [
                numpy_helper.from_array(np.rint(weight / scale).astype(np.int8), f"{tensor.name}.int8"),
                numpy_helper.from_array(scale, f"{tensor.name}.scale"),
            ]
        )
        if gathered:
            for node in users:
                nodes[nodes.index(node) : nodes.index(node) + 1] = _gather(node, tensor.name)
        else:
            nodes[:0] = _dequantise(f"{tensor.name}.int8", f"{tensor.name}.scale", tensor.name)
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.checker.check_model(model, full_check=True)
    return model


def _dequantise(values: str, scale: str, output: str) -> list[onnx.NodeProto]:
    return [
        helper.make_node("Cast", [values], [f"{output}.float"], to=TensorProto.FLOAT),
        helper.make_node("Mul", [f"{output}.float", scale], [output]),
    ]


def _gather(node: onnx.NodeProto, table: str) -> list[onnx.NodeProto]:
    """Look up int8 rows and their scales, and multiply only those."""
    indices, output = node.input[1], node.output[0]
    return [
        helper.make_node("Gather", [f"{table}.int8", indices], [f"{output}.rows"], axis=0),
        helper.make_node("Gather", [f"{table}.scale", indices], [f"{output}.scales"], axis=0),
        *_dequantise(f"{output}.rows", f"{output}.scales", output),
    ]


def write_tokenizer(source: Path, target: Path) -> None:
    """Copy the tokenizer without its truncation and padding, which the engine decides."""
    tokenizer = json.loads((source / "tokenizer.json").read_text("utf-8"))
    tokenizer["truncation"] = tokenizer["padding"] = None
    target.write_text(json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":")), "utf-8")


def write_config(source: Path, target: Path, revision: str) -> None:
    """Shorten the source's config, and add what the export decided."""
    full = json.loads((source / "config.json").read_text("utf-8"))
    config = {key: full[key] for key in KEPT}
    lara: dict[str, object] = {"max_length": MAX_LENGTH, "precision": "int8-weights"}
    lara["source_sha256"] = revision
    if target.exists():
        earlier = json.loads(target.read_text("utf-8"))["lara"]
        if "scaling" in earlier and all(earlier[key] == value for key, value in lara.items()):
            lara["scaling"] = earlier["scaling"]
    target.write_text(json.dumps(config | {"lara": lara}, indent=2) + "\n", "utf-8")


def main() -> None:
    """Export SOURCE to TARGET."""
    parser = argparse.ArgumentParser(description="Export a small BERT cross-encoder for the wheel.")
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    arguments = parser.parse_args()
    source, target = arguments.source, arguments.target
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        float32 = Path(folder) / "float32.onnx"
        export_float32(source, float32)
        onnx.save(quantise_weights(onnx.load(float32)), target / "model.onnx")
    write_tokenizer(source, target / "tokenizer.json")
    revision = hashlib.sha256((source / "model.safetensors").read_bytes()).hexdigest()
    write_config(source, target / "config.json", revision)


if __name__ == "__main__":
    main()
