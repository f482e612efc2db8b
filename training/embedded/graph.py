"""The cross-encoder as an ONNX graph of onnxruntime's fused operators, written node by node.

An exporter's graph has about three times as many nodes, and spells out attention, normalisation
and quantisation in parts that onnxruntime no longer recognises. This one scores a pair of 180
tokens in about half the time.

One pair runs at a time: there is nothing to mask, and the int8 range of the activations is that
of the pair alone.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from model import CLS, SEP, Size
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

OPSET, IR_VERSION = 17, 9
CONTRIB = "com.microsoft"
EPSILON = 1e-12
LARGEST_WEIGHT = 63
"""Of seven bits, not eight: processors without VNNI add two products of a byte in 16 bits."""

Attribute = int | float | list[int]
Weights = Mapping[str, NDArray[np.float32]]


class Graph:
    """Nodes and constants in the order in which they are added."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, value: object, dtype: type[np.generic] = np.float32) -> str:
        """Add a constant; returns its name."""
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(value, dtype, order="C"), name))
        return name

    def add(self, kind: str, *inputs: str, domain: str = "", **attributes: Attribute) -> str:
        """Add a node with one output; returns the output's name."""
        return self.add_many(1, kind, *inputs, domain=domain, **attributes)[0]

    def add_many(
        self, outputs: int, kind: str, *inputs: str, domain: str = "", **attributes: Attribute
    ) -> list[str]:
        """Add a node; returns its outputs' names."""
        names = [f"{kind}_{len(self.nodes)}_{output}" for output in range(outputs)]
        node = helper.make_node(
            kind, inputs, names, name=f"{kind}_{len(self.nodes)}", domain=domain, **attributes
        )
        self.nodes.append(node)
        return names


def cross_encoder_graph(weights: Weights, size: Size, *, int8: bool) -> onnx.ModelProto:
    """The model of ``model.CrossEncoder``: ids and types of a pair in, its logit out.

    Args:
        weights: its state, by name.
        size: its layers, heads and neurons.
        int8: whether the layers' matrices and their inputs are rounded to int8.
    """
    graph = Graph()
    states = _embeddings(graph, weights)
    for layer in range(size.layers):
        states = _layer(graph, weights, f"body.encoder.layer.{layer}.", states, size.heads, int8=int8)
    graph.add("Identity", _head(graph, weights, states))
    graph.nodes[-1].output[0] = "logits"
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"])
        for name in ("input_ids", "token_type_ids")
    ]
    output = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 1])
    model = helper.make_model(
        helper.make_graph(graph.nodes, "cross_encoder", inputs, [output], graph.constants),
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIB, 1)],
        ir_version=IR_VERSION,
    )
    onnx.checker.check_model(model)
    return model


def _embeddings(graph: Graph, weights: Weights) -> str:
    """Words (int8 rows and a scale each), positions and types, normalised."""
    name = "body.embeddings."
    words, scales = rounded(weights[f"{name}word_embeddings.weight"], axis=1, largest=127)
    rows = graph.add(
        "Cast", graph.add("Gather", graph.constant(words, np.int8), "input_ids"), to=TensorProto.FLOAT
    )
    word = graph.add("Mul", rows, graph.add("Gather", graph.constant(scales), "input_ids"))
    length = graph.add("Gather", graph.add("Shape", "input_ids"), graph.constant([1], np.int64))
    positions = graph.constant(weights[f"{name}position_embeddings.weight"])
    position = graph.add("Slice", positions, graph.constant([0], np.int64), length)
    kind = graph.add(
        "Gather", graph.constant(weights[f"{name}token_type_embeddings.weight"]), "token_type_ids"
    )
    return _normalised(graph, weights, f"{name}LayerNorm", graph.add("Add", word, position), kind)


def _layer(graph: Graph, weights: Weights, name: str, states: str, heads: int, *, int8: bool) -> str:
    """Attention and feed-forward, each added to its input and normalised."""
    parts = [f"{name}attention.self.{part}" for part in ("query", "key", "value")]
    width = len(weights[f"{parts[0]}.bias"])
    matrix = np.concatenate([weights[f"{part}.weight"] for part in parts])
    bias = np.concatenate([weights[f"{part}.bias"] for part in parts])
    together = _product(graph, states, matrix, bias, int8=int8)
    asked = graph.add_many(3, "Split", together, graph.constant([width] * 3, np.int64), axis=-1)
    attended = graph.add("MultiHeadAttention", *asked, domain=CONTRIB, num_heads=heads)
    attended = _linear(graph, weights, f"{name}attention.output.dense", attended, int8=int8)
    states = _normalised(graph, weights, f"{name}attention.output.LayerNorm", attended, states)
    hidden = _linear(graph, weights, f"{name}intermediate.dense", states, int8=int8)
    hidden = graph.add("Gelu", hidden, domain=CONTRIB)
    hidden = _linear(graph, weights, f"{name}output.dense", hidden, int8=int8)
    return _normalised(graph, weights, f"{name}output.LayerNorm", hidden, states)


def _head(graph: Graph, weights: Weights, states: str) -> str:
    """The evidence that ``CrossEncoder.logits`` sums."""
    one, two = (graph.constant([axis], np.int64) for axis in (1, 2))
    special = [graph.add("Equal", "input_ids", graph.constant(token, np.int64)) for token in (CLS, SEP)]
    words = graph.add("Cast", graph.add("Not", graph.add("Or", *special)), to=TensorProto.FLOAT)
    passage = graph.add("Mul", words, graph.add("Cast", "token_type_ids", to=TensorProto.FLOAT))
    question = graph.add("Sub", words, passage)

    unit = graph.add("Div", states, graph.add("ReduceL2", states, axes=[2], keepdims=1))
    cosines = graph.add("MatMul", unit, graph.add("Transpose", unit, perm=[0, 2, 1]))
    lacking = graph.add("Mul", graph.add("Sub", passage, graph.constant(1)), graph.constant(4))
    best = graph.add(
        "ReduceMax", graph.add("Add", cosines, graph.add("Unsqueeze", lacking, one)), axes=[2], keepdims=0
    )

    importance = graph.add("Gather", graph.constant(weights["importance.weight"][:, 0]), "input_ids")
    attended = graph.add("MatMul", states, graph.constant(weights["attend.weight"].T))
    weight = graph.add("Add", importance, graph.add("Squeeze", attended, two))
    weight = graph.add("Exp", graph.add("Clip", weight, graph.constant(-8), graph.constant(8)))
    weight = graph.add("Mul", weight, question)
    total = graph.add("Add", graph.add("ReduceSum", weight, one, keepdims=0), graph.constant(1e-6))
    found = graph.add("ReduceSum", graph.add("Mul", weight, best), one, keepdims=0)
    interaction = graph.add("Div", found, total)

    def mean(marked: str) -> str:
        total = graph.add("Squeeze", graph.add("MatMul", graph.add("Unsqueeze", marked, one), states), one)
        length = graph.add("ReduceL2", total, axes=[1], keepdims=1)
        return graph.add("Div", total, graph.add("Max", length, graph.constant(EPSILON)))

    similarity = graph.add("ReduceSum", graph.add("Mul", mean(question), mean(passage)), one, keepdims=0)
    first = graph.add("Gather", states, graph.constant(0, np.int64), axis=1)
    reading = graph.add(
        "Gemm", first, graph.constant(weights["read.weight"]), graph.constant(weights["read.bias"]), transB=1
    )
    by_interaction, by_similarity = weights["evidence"]
    evidence = graph.add(
        "Add",
        graph.add("Mul", interaction, graph.constant(by_interaction)),
        graph.add("Mul", similarity, graph.constant(by_similarity)),
    )
    return graph.add("Add", graph.add("Unsqueeze", evidence, one), reading)


def _linear(graph: Graph, weights: Weights, name: str, states: str, *, int8: bool) -> str:
    return _product(graph, states, weights[f"{name}.weight"], weights[f"{name}.bias"], int8=int8)


def _product(
    graph: Graph, states: str, matrix: NDArray[np.float32], bias: NDArray[np.float32], *, int8: bool
) -> str:
    """States by a matrix of shape (outputs, inputs), and the bias added."""
    if not int8:
        return graph.add("Add", graph.add("MatMul", states, graph.constant(matrix.T)), graph.constant(bias))
    values, scales = rounded(matrix.T, axis=0, largest=LARGEST_WEIGHT)
    constants = [graph.constant(values, np.int8), graph.constant(scales[0])]
    zero = graph.constant(np.zeros(len(bias)), np.int8)
    return graph.add("DynamicQuantizeMatMul", states, *constants, zero, graph.constant(bias), domain=CONTRIB)


def _normalised(graph: Graph, weights: Weights, name: str, new: str, old: str) -> str:
    scale, shift = (graph.constant(weights[f"{name}.{part}"]) for part in ("weight", "bias"))
    return graph.add("LayerNormalization", graph.add("Add", new, old), scale, shift, axis=-1, epsilon=EPSILON)


def rounded(
    matrix: NDArray[np.float32], axis: int, largest: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Whole numbers of at most ``largest``, and the scales along ``axis`` that give the matrix back."""
    scale = np.maximum(np.abs(matrix).max(axis=axis, keepdims=True), np.finfo(np.float32).tiny) / largest
    return np.rint(matrix / scale), scale.astype(np.float32)
