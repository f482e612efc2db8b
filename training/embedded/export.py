"""Export the trained cross-encoder to the files that ship in the wheel.

    python export.py MODEL TARGET

MODEL is what ``train.py`` wrote. TARGET receives ``model.onnx`` (int8), ``tokenizer.json`` and
``config.json`` without the fusion's weights, which ``fuse.py`` adds.

Word embeddings are int8 with one scale a row. Matrices are int8 with one scale an output channel,
and the activations that meet them are rounded to int8 with one range a run; the engine runs each
pair alone, so that a score depends on its pair only.
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
from model import VOCABULARY, CrossEncoder
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from prepare import MINILM

OPSET = 17
MAX_LENGTH = 512
SMALLEST_TABLE, SMALLEST_MATRIX = 1_000_000, 100_000
"""Embeddings and matrices with fewer elements stay float32."""

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
KEPT = ("model_type", "max_position_embeddings", "pad_token_id", "vocab_size")
"""What an engine or a reader wants to know of the body's config."""


def load_model(path: Path) -> CrossEncoder:
    """The trained model, for inference."""
    saved = torch.load(path)
    model = CrossEncoder(MINILM, saved["layers"], torch.zeros(VOCABULARY))
    model.load_state_dict(saved["state"])
    return model.eval()


def export_float32(model: CrossEncoder, target: Path) -> None:
    """Write the model as float32 ONNX with a dynamic batch and sequence."""
    ids = torch.arange(1000, 1018).reshape(2, 9)
    types = (torch.arange(9) > 4).long().repeat(2, 1)
    axes = {0: "batch", 1: "sequence"}
    torch.onnx.export(
        model,
        (ids, torch.ones_like(ids), types),
        str(target),
        input_names=list(INPUTS),
        output_names=["logits"],
        dynamic_axes=dict.fromkeys(INPUTS, axes) | {"logits": {0: "batch"}},
        opset_version=OPSET,
        dynamo=False,
    )


def large_products(model: onnx.ModelProto) -> list[str]:
    """The names of the products with a matrix of the body."""
    large = {each.name for each in model.graph.initializer if np.prod(each.dims) >= SMALLEST_MATRIX}
    return [node.name for node in model.graph.node if node.op_type == "MatMul" and node.input[1] in large]


def quantise_embeddings(model: onnx.ModelProto) -> onnx.ModelProto:
    """Replace each large float32 table that is only looked up by int8 rows and their scales."""
    graph = model.graph
    nodes = list(graph.node)
    for tensor in list(graph.initializer):
        table = numpy_helper.to_array(tensor)
        users = [node for node in nodes if tensor.name in node.input]
        if (
            table.dtype != np.float32
            or table.size < SMALLEST_TABLE
            or any(n.op_type != "Gather" for n in users)
        ):
            continue
        scale = np.abs(table).max(axis=1, keepdims=True) / 127
        scale = np.maximum(scale, np.finfo(np.float32).tiny).astype(np.float32)
        graph.initializer.remove(tensor)
        rounded = np.rint(table / scale).astype(np.int8)
        graph.initializer.append(numpy_helper.from_array(rounded, f"{tensor.name}.int8"))
        graph.initializer.append(numpy_helper.from_array(scale, f"{tensor.name}.scale"))
        for node in users:
            nodes[nodes.index(node) : nodes.index(node) + 1] = _look_up(node, tensor.name)
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.checker.check_model(model)
    return model


def _look_up(node: onnx.NodeProto, table: str) -> list[onnx.NodeProto]:
    """Look up int8 rows and their scales, and multiply only those."""
    indices, output = node.input[1], node.output[0]
    return [
        helper.make_node("Gather", [f"{table}.int8", indices], [f"{output}.rows"], axis=0),
        helper.make_node("Gather", [f"{table}.scale", indices], [f"{output}.scales"], axis=0),
        helper.make_node("Cast", [f"{output}.rows"], [f"{output}.float"], to=TensorProto.FLOAT),
        helper.make_node("Mul", [f"{output}.float", f"{output}.scales"], [output]),
    ]


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
    arguments = parser.parse_args()
    target = arguments.target
    target.mkdir(parents=True, exist_ok=True)
    model = load_model(arguments.model)
    with tempfile.TemporaryDirectory() as folder:
        float32, matrices = Path(folder) / "float32.onnx", Path(folder) / "matrices.onnx"
        export_float32(model, float32)
        quantize_dynamic(
            float32,
            matrices,
            nodes_to_quantize=large_products(onnx.load(float32)),
            weight_type=QuantType.QInt8,
            per_channel=True,
        )
        onnx.save(quantise_embeddings(onnx.load(matrices)), target / "model.onnx")
    write_tokenizer(target / "tokenizer.json")
    config = {key: value for key, value in model.body.config.to_dict().items() if key in KEPT}
    revision = hashlib.sha256(arguments.model.read_bytes()).hexdigest()
    lara = {"max_length": MAX_LENGTH, "precision": "int8-dynamic", "source_sha256": revision}
    config |= {"id2label": {"0": "LABEL_0"}, "lara": lara}
    (target / "config.json").write_text(json.dumps(config, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
