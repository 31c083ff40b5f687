# SPDX-License-Identifier: Apache-2.0
"""A whole training step as one graph: forward, backward and Adam's update of the parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import fx, nn
from torch.nn import functional

#: Adam's constants: the defaults of torch.optim.Adam.
LEARNING_RATE, BETA1, BETA2, EPSILON = 1e-3, 0.9, 0.999, 1e-8
#: The step that is compiled; earlier ones correct the bias of the moments by other constants.
STEP = 10
_SEED = 0


class TransformerBlock(nn.Module):
    """A pre-norm decoder block as LLaMA's: causal attention and a gated MLP, each with RMS norm and residual.

    Parameters
    ----------
    width, heads, hidden : int
        Sizes of the stream, its heads and the MLP.
    """

    def __init__(self, width: int = 512, heads: int = 8, hidden: int = 1376):
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.RMSNorm(width, eps=1e-6)
        self.mlp_norm = nn.RMSNorm(width, eps=1e-6)
        self.query, self.key, self.value, self.output = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate, self.up = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        """Return the block's output, shape (batch, tokens, width) as `x`."""
        x = x + self._attend(self.attention_norm(x))
        normal = self.mlp_norm(x)
        return x + self.down(functional.silu(self.gate(normal)) * self.up(normal))

    def _attend(self, x):
        batch, tokens, width = x.shape
        split = (batch, tokens, self.heads, width // self.heads)
        query, key, value = (layer(x).view(split).transpose(1, 2) for layer in (self.query, self.key, self.value))
        scores = query @ key.transpose(-1, -2) * (width // self.heads) ** -0.5
        positions = torch.arange(tokens, device=x.device)
        future = positions[None, :] > positions[:, None]
        mixed = scores.masked_fill(future, float("-inf")).softmax(-1) @ value
        return self.output(mixed.transpose(1, 2).reshape(batch, tokens, width))


class BlockLoss(nn.Module):
    """A transformer block under a mean squared error loss; its training step includes Adam."""

    nearbank_train = True
    nearbank_optimizer = "adam"

    def __init__(self):
        super().__init__()
        self.block = TransformerBlock()

    def forward(self, x, target):
        """Return the scalar loss."""
        return functional.mse_loss(self.block(x), target)


def adam(parameter, gradient, first, second):
    """Update one parameter.

    Parameters
    ----------
    parameter, gradient, first, second : torch.Tensor
        The parameter, its gradient, and the moments of its gradients so far.

    Returns
    -------
    tuple of torch.Tensor
        New parameter and moments, as step `STEP` of torch.optim.Adam makes them.
    """
    first = BETA1 * first + (1 - BETA1) * gradient
    second = BETA2 * second + (1 - BETA2) * gradient * gradient
    rate, scale = LEARNING_RATE / (1 - BETA1**STEP), (1 - BETA2**STEP) ** -0.5
    return parameter - rate * first / (second.sqrt() * scale + EPSILON), first, second


@dataclass
class Moments:
    """Names of the trained parameters, and the moments that they have before the step.

    Parameters
    ----------
    names : list of str
        Parameters.
    first, second : list of torch.Tensor
        A moment of each.
    """

    names: list[str]
    first: list[torch.Tensor]
    second: list[torch.Tensor]

    @property
    def argument_names(self) -> list[str]:
        """Names of all moments."""
        return [f"{which} moment of {name}" for which in ("first", "second") for name in self.names]

    @property
    def output_names(self) -> list[str]:
        """Names of what a step makes anew."""
        return [f"new value of {name}" for name in (*self.names, *self.argument_names)]

    def update(self, parameters: Sequence[torch.Tensor], gradients: Sequence[torch.Tensor]) -> dict[str, torch.Tensor]:
        """Make a step in eager PyTorch, in the type of the parameters; return new values by name."""
        moments = [[m.to(p.dtype) for m, p in zip(of, parameters, strict=True)] for of in (self.first, self.second)]
        new = zip(*map(adam, parameters, gradients, *moments), strict=True)
        return dict(zip(self.output_names, [tensor for tensors in new for tensor in tensors], strict=True))


def append_adam(joint: fx.GraphModule, arguments, names, output_names) -> tuple[fx.GraphModule, Moments]:
    """Let a graph of loss and gradients go on to the updated parameters.

    Parameters
    ----------
    joint : torch.fx.GraphModule
        The graph.
    arguments, names : list
        One tensor and one name for each of its placeholders.
    output_names : list of str
        One for each of its outputs; gradients are ``grad of NAME``.

    Returns
    -------
    (torch.fx.GraphModule, Moments)
        A graph with the moments as further arguments. Its outputs are those of `joint` without the gradients, then
        ``Moments.output_names``.
    """
    from torch.fx import traceback
    from torch.fx.experimental.proxy_tensor import make_fx

    trained = [label.removeprefix("grad of ") for label in output_names if label.startswith("grad of ")]
    parameters = [names.index(name) for name in trained]
    generator = torch.Generator().manual_seed(_SEED)

    def drawn(index: int, make: Callable) -> torch.Tensor:
        tensor = arguments[index]
        drawn = make(tensor.shape, generator=generator, dtype=torch.float32).to(tensor.dtype)
        return drawn.to(tensor.device)

    # Moments as after some steps: the update is then no quotient of vanishing numbers.
    first = [1e-3 * drawn(index, torch.randn) for index in parameters]
    second = [1e-5 * (0.5 + drawn(index, torch.rand)) for index in parameters]

    def step(*operands):
        given, moments = operands[: len(arguments)], operands[len(arguments) :]
        with traceback.preserve_node_meta():
            outputs = fx.Interpreter(joint).run(*given)
        by_label = dict(zip(output_names, outputs, strict=True))
        gradients = [by_label.pop(f"grad of {name}") for name in trained]
        count = len(trained)
        values = [given[index] for index in parameters]
        new = zip(*map(adam, values, gradients, moments[:count], moments[count:]), strict=True)
        return (*by_label.values(), *(tensor for tensors in new for tensor in tensors))

    graph_module = make_fx(step, tracing_mode="fake")(*arguments, *first, *second)
    output = next(node for node in graph_module.graph.nodes if node.op == "output")
    output.args = (tuple(output.args[0]),)
    graph_module.graph.set_codegen(fx.graph.CodeGen())
    graph_module.recompile()
    return graph_module, Moments(trained, first, second)


def block_step(batch: int | None):
    """Create a block of llama-tiny's size with its loss.

    Parameters
    ----------
    batch : int, optional
        Sequences of 64 tokens; 1 by default.

    Returns
    -------
    tuple of (BlockLoss, tuple of torch.Tensor)
        The module, and its input and target.
    """
    shape = (batch or 1, 64, 512)
    return BlockLoss(), (torch.randn(shape), torch.randn(shape))
