"""The embedded cross-encoder: lower layers of MiniLM over the pair, and a late interaction on top."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn
from torch.nn.functional import normalize
from transformers import AutoModel

CLS, SEP, VOCABULARY = 101, 102, 30522


class CrossEncoder(nn.Module):
    """Question and passage attend to each other in every layer; the logit is a sum of evidence.

    Of the last layer's unit vectors: each question token's best cosine among the passage's tokens,
    averaged by learned weights (the late interaction of Khattab and Zaharia, "ColBERT", 2020, here
    over jointly encoded tokens); the cosine of the two mean vectors; and a linear reading of [CLS].
    A question token weighs exp(a vocabulary entry + a linear reading of its vector).

    Args:
        folder: a BERT as transformers saves it.
        layers: how many of its lower layers are taken.
        importance: natural logarithm of each token's starting weight, shape (vocabulary,).
    """

    def __init__(self, folder: Path, layers: int, importance: torch.Tensor) -> None:
        super().__init__()
        self.body = AutoModel.from_pretrained(
            folder, add_pooling_layer=False, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
        )
        self.body.encoder.layer = self.body.encoder.layer[:layers]
        self.body.config.num_hidden_layers = layers
        width = self.body.config.hidden_size
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
