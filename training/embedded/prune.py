"""Narrow a trained cross-encoder, so that it scores faster; ``train.py --start`` then trains it further.

    python prune.py MODEL people.pt TARGET [--heads 8] [--neurons 768] [--steps 40] [--seed 0]

Of each layer the attention heads and feed-forward neurons are kept whose removal would change the
training's loss the most: by the size of its gradient by a gate on each (Michel, Levy and Neubig,
"Are Sixteen Heads Really Better than One?", 2019), on some of the training questions.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from pathlib import Path

import torch
from model import CrossEncoder, Size, keep_of_layer, load, save
from prepare import MINILM
from torch import nn
from train import GROUPS, Prepared, load_prepared, losses


def gated(linear: nn.Linear, gates: int) -> tuple[torch.Tensor, Callable[[], None]]:
    """Gates of 1 on equal shares of the map's inputs, and what takes them away again."""
    gate = torch.ones(gates, requires_grad=True)
    width = linear.in_features // gates
    hook = linear.register_forward_pre_hook(
        lambda _, inputs: (inputs[0] * gate.repeat_interleave(width).to(inputs[0].dtype),)
    )
    return gate, hook.remove


def importance(model: CrossEncoder, data: Prepared, steps: int, seed: int) -> list[list[torch.Tensor]]:
    """For each layer how much each head, and each neuron, matters to the loss."""
    rng = random.Random(seed)  # noqa: S311
    gates, removals = [], []
    for layer in model.body.encoder.layer:
        for linear, count in (
            (layer.attention.output.dense, model.size.heads),
            (layer.output.dense, model.size.neurons),
        ):
            gate, remove = gated(linear, count)
            gates.append(gate)
            removals.append(remove)
    sums = [torch.zeros(len(gate)) for gate in gates]
    for _ in range(steps):
        chosen = rng.sample(range(len(data.groups)), GROUPS)
        loss = losses(model, data, chosen, rng).total(1.0)
        gradients = torch.autograd.grad(loss, gates)
        sums = [total + gradient.abs() for total, gradient in zip(sums, gradients, strict=True)]
    for remove in removals:
        remove()
    return [sums[i : i + 2] for i in range(0, len(sums), 2)]


def main() -> None:
    """Narrow MODEL and write it as TARGET/model.pt."""
    parser = argparse.ArgumentParser(description="Narrow a trained cross-encoder.")
    parser.add_argument("model", type=Path)
    parser.add_argument("prepared", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--neurons", type=int, default=768)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    arguments.target.mkdir(parents=True, exist_ok=True)
    data = load_prepared([arguments.prepared])
    model = load(MINILM, arguments.model).eval()
    found = importance(model, data, arguments.steps, arguments.seed)
    for layer, (heads, neurons) in zip(model.body.encoder.layer, found, strict=True):
        kept = heads.topk(arguments.heads).indices.sort().values
        print("heads kept:", kept.tolist(), heads.div(heads.sum()).round(decimals=2).tolist())
        keep_of_layer(layer, kept, neurons.topk(arguments.neurons).indices.sort().values)
    model.size = Size(model.size.layers, arguments.heads, arguments.neurons)
    save(model, arguments.target / "model.pt")


if __name__ == "__main__":
    main()
