# SPDX-License-Identifier: Apache-2.0
"""Small models that the front-end tests share."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class TwoLayers(nn.Module):
    """Linear, GELU, linear."""

    def __init__(self):
        super().__init__()
        self.up = nn.Linear(8, 16)
        self.down = nn.Linear(16, 4)

    def forward(self, x):
        return self.down(functional.gelu(self.up(x)))


class FusedAttention(nn.Module):
    """scaled_dot_product_attention, causal."""

    def __init__(self):
        super().__init__()
        self.project = nn.Linear(8, 24)

    def forward(self, x):
        query, key, value = self.project(x).view(2, 5, 2, 12).transpose(1, 2).split(4, -1)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return mixed.transpose(1, 2).reshape(2, 5, 8)


class Convolution(nn.Module):
    """Convolution, batch norm in training mode, max pool, cross entropy."""

    def __init__(self):
        super().__init__()
        # No bias: under batch norm its gradient is zero, and what is computed is rounding only.
        self.convolution = nn.Conv2d(3, 4, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(4)
        self.classify = nn.Linear(64, 5)

    def forward(self, x, target):
        features = functional.max_pool2d(functional.relu(self.norm(self.convolution(x))), 2)
        return functional.cross_entropy(self.classify(features.flatten(1)), target)


class TokenModel(nn.Module):
    """Embedding and cross entropy."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10, 6, padding_idx=3)
        self.classify = nn.Linear(6, 10)

    def forward(self, tokens, target):
        return functional.cross_entropy(self.classify(self.embedding(tokens)).flatten(0, 1), target.flatten())


class Dropout(nn.Module):
    """Linear, layer norm, dropout."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 16)
        self.norm = nn.LayerNorm(16)

    def forward(self, x):
        return functional.dropout(self.norm(self.linear(x)), 0.5, self.training)


class SortsInTheMiddle(nn.Module):
    """An operator without a loop form between two linear layers."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.second = nn.Linear(16, 4)

    def forward(self, x):
        ordered = torch.sort(self.first(x), dim=-1)[0]  # the line that cannot be compiled
        return self.second(ordered * 2)


class RotaryTable(nn.Module):
    """Holds a buffer that is not part of its state, as rotary embeddings do."""

    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.arange(8.0).cos(), persistent=False)

    def forward(self, x):
        return x * self.table
