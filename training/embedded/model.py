"""The embedded cross-encoder: lower layers of MiniLM over the pair, and a late interaction on top."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import nn
from torch.nn.functional import normalize
from transformers import AutoModel

CLS, SEP, VOCABULARY = 101, 102, 30522


@dataclass(frozen=True)
class Size:
    """How much of MiniLM is taken: layers, and in each attention heads and feed-forward neurons."""

    layers: int = 2
    heads: int = 12
    neurons: int = 1536


class CrossEncoder(nn.Module):
    """Question and passage attend to each other in every layer; the logit is a sum of evidence.

    Of the last layer's unit vectors: each question token's best cosine among the passage's tokens,
    averaged by learned weights (the late interaction of Khattab and Zaharia, "ColBERT", 2020, here
    over jointly encoded tokens); the cosine of the two mean vectors; and a linear reading of [CLS].
    A question token weighs exp(a vocabulary entry + a linear reading of its vector).

    Args:
        folder: a BERT as transformers saves it.
        size: how many of its lower layers are taken, and how wide they are.
        importance: natural logarithm of each token's starting weight, shape (vocabulary,).
    """

    def __init__(self, folder: Path, size: Size, importance: torch.Tensor) -> None:
        super().__init__()
        self.size = size
        self.body = AutoModel.from_pretrained(
            folder, add_pooling_layer=False, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
        )
        self.body.encoder.layer = self.body.encoder.layer[: size.layers]
        self.body.config.num_hidden_layers = size.layers
        width = self.body.config.hidden_size
        for layer in self.body.encoder.layer:
            keep_of_layer(layer, torch.arange(size.heads), torch.arange(size.neurons))
        self.importance = nn.Embedding.from_pretrained(importance[:, None].clone(), freeze=False)
        self.attend = nn.Linear(width, 1, bias=False)
        self.read = nn.Linear(width, 1)
        self.evidence = nn.Parameter(torch.tensor([14.0, 3.0]))
        nn.init.zeros_(self.attend.weight)
        nn.init.zeros_(self.read.weight)
        nn.init.constant_(self.read.bias, -11.0)

    def states(self, ids: torch.Tensor, mask: torch.Tensor, types: torch.Tensor) -> torch.Tensor:
        """The last layer's token vectors, shape (batch, sequence, width)."""
        states: torch.Tensor = self.body(
            input_ids=ids, attention_mask=mask, token_type_ids=types
        ).last_hidden_state
        return states

    def logits(
        self, states: torch.Tensor, ids: torch.Tensor, mask: torch.Tensor, types: torch.Tensor
    ) -> torch.Tensor:
        """The logits of token vectors, shape (batch,)."""
        words = (mask * (ids != CLS) * (ids != SEP)).to(states.dtype)
        passage = words * types
        question = words * (1 - types)
        unit = normalize(states, dim=-1)
        cosines = unit @ unit.transpose(1, 2) - 4.0 * (1 - passage)[:, None, :]
        best = cosines.amax(dim=2)
        weight = (self.importance(ids) + self.attend(states))[..., 0].clamp(-8, 8).exp() * question
        interaction = (weight * best).sum(1) / (weight.sum(1) + 1e-6)
        similarity = (_mean(states, question) * _mean(states, passage)).sum(1)
        return self.evidence[0] * interaction + self.evidence[1] * similarity + self.read(states[:, 0])[:, 0]

    def forward(self, ids: torch.Tensor, mask: torch.Tensor, types: torch.Tensor) -> torch.Tensor:
        """The logits of pairs, shape (batch, 1)."""
        return self.logits(self.states(ids, mask, types), ids, mask, types)[:, None]


def _mean(states: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
    """The unit mean vector of the marked tokens; zero where none is."""
    return normalize((states * words[..., None]).sum(1), dim=-1)


def keep_of_layer(layer: nn.Module, heads: torch.Tensor, neurons: torch.Tensor) -> None:
    """Keep these attention heads and feed-forward neurons of a layer, in place."""
    attention = layer.attention.self
    width = attention.attention_head_size
    rows = (heads[:, None] * width + torch.arange(width)).flatten()
    for name in ("query", "key", "value"):
        setattr(attention, name, _narrowed(getattr(attention, name), rows, 0))
    attention.num_attention_heads, attention.all_head_size = len(heads), len(rows)
    layer.attention.output.dense = _narrowed(layer.attention.output.dense, rows, 1)
    layer.intermediate.dense = _narrowed(layer.intermediate.dense, neurons, 0)
    layer.output.dense = _narrowed(layer.output.dense, neurons, 1)


def _narrowed(linear: nn.Linear, kept: torch.Tensor, dimension: int) -> nn.Linear:
    """The map with some of its outputs (dimension 0) or inputs (1)."""
    weight = linear.weight.detach().index_select(dimension, kept)
    bias = linear.bias.detach().index_select(0, kept) if dimension == 0 else linear.bias.detach()
    narrowed = nn.Linear(weight.shape[1], weight.shape[0])
    narrowed.weight.data, narrowed.bias.data = weight.clone(), bias.clone()
    return narrowed


def save(model: CrossEncoder, path: Path) -> None:
    """Write the weights with the size that they need."""
    torch.save({"size": asdict(model.size), "state": model.state_dict()}, path)


def load(folder: Path, path: Path) -> CrossEncoder:
    """The model that ``save`` wrote; ``folder`` is that of its body."""
    saved = torch.load(path)
    model = CrossEncoder(folder, Size(**saved["size"]), torch.zeros(VOCABULARY))
    model.load_state_dict(saved["state"])
    return model
