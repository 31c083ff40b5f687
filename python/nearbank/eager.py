# SPDX-License-Identifier: Apache-2.0
"""Runs the user's module in eager PyTorch, for reference values and times."""

from __future__ import annotations

import copy
import time

import torch

from nearbank.locations import ROOT_NAME

#: Random operators draw from this seed on both sides.
SEED = 0


class EagerModel:
    """A copy of a captured module whose floats have one type.

    Parameters
    ----------
    flat : torch.nn.Module
        The module with flat tensor arguments.
    tensors : sequence of torch.Tensor
        Its inputs.
    output_names : list of str
        Names as in `nearbank.capture.CapturedModel`.
    training : bool
        Compute gradients too.
    dtype : torch.dtype or None
        Type of all floating-point parameters, buffers and inputs; None leaves them.
    moments : nearbank.training_step.Moments, optional
        Update the parameters with Adam, from these moments.
    """

    def __init__(self, flat, tensors, output_names, training, dtype, moments=None):
        self._moments = moments
        self._module = copy.deepcopy(flat)
        self._tensors = list(tensors)
        self._names = output_names
        self._training = training
        self._updated: dict[str, torch.Tensor] = {}
        if dtype is not None:
            self._module = self._module.to(dtype)
            self._tensors = [t.to(dtype) if t.is_floating_point() else t for t in self._tensors]

    def _step(self):
        self._module.zero_grad(set_to_none=True)
        with torch.set_grad_enabled(self._training):
            outputs = self._module(*self._tensors)
        if self._training:
            outputs[0].sum().backward()
        if self._moments:
            named = {name.removeprefix(ROOT_NAME + "."): p for name, p in self._module.named_parameters()}
            trained = [named[name] for name in self._moments.names]
            with torch.no_grad():
                self._updated = self._moments.update(trained, [parameter.grad for parameter in trained])
        return outputs

    def outputs(self) -> list[torch.Tensor | None]:
        """Run once.

        Returns
        -------
        list of torch.Tensor or None
            One per output name; None for values that eager does not return.
        """
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(SEED)
            outputs = self._step()
        prefix = ROOT_NAME + "."
        values = {f"output{i}": output.detach() for i, output in enumerate(outputs)}
        for name, parameter in self._module.named_parameters(remove_duplicate=False):
            values[f"grad of {name.removeprefix(prefix)}"] = parameter.grad
        for name, buffer in self._module.named_buffers(remove_duplicate=False):
            values[f"new value of {name.removeprefix(prefix)}"] = buffer.clone()
        values.update(self._updated)
        return [values.get(name) for name in self._names]

    def time_ns(self) -> int:
        """Run once more and return the measured wall time in ns."""
        with torch.random.fork_rng(devices=[]):
            started = time.perf_counter_ns()
            self._step()
            return time.perf_counter_ns() - started
