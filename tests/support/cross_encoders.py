"""A question, passages, and models to score them with."""

from __future__ import annotations

from pathlib import Path

import pytest

import lara_plugins.gate

QUESTION = "who wrote the novel Frankenstein"
ANSWERING = "Frankenstein\nFrankenstein is an 1818 novel written by the English author Mary Shelley."
PASSAGES = [
    "Mount Etna\nMount Etna is an active volcano on the east coast of Sicily.",
    ANSWERING,
    "Glass\nThe batch is melted in a furnace at about 1500 degrees.",
    "Tariff\nA tariff is a tax on imports " + "or exports between sovereign states " * 20,
    "",
    "Приветствие\nЭто предложение написано по-русски.",
    "天気\n今日は雨が降っています。",
    "Short.",
]
EMBEDDED_FOLDER = Path(lara_plugins.gate.__file__).parent / "embedded_model"


def random_model(folder: Path, labels: int = 1) -> Path:
    """A tiny BERT with random weights and the embedded model's tokenizer, as transformers saves it."""
    pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    import torch
    from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

    torch.manual_seed(0)
    config = BertConfig(
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        initializer_range=0.2,  # so that the logits of two passages differ
        num_labels=labels,
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    special = {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]"}
    PreTrainedTokenizerFast(
        tokenizer_file=str(EMBEDDED_FOLDER / "tokenizer.json"),
        model_max_length=512,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        **special,
    ).save_pretrained(folder)
    return folder
