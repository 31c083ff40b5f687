# SPDX-License-Identifier: Apache-2.0
"""Full-size models from the configurations of transformers, and local Hugging Face folders; meta device for plans."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

from nearbank import model_configurations
from nearbank.errors import make_error, unknown_name

#: Built-in names that `load` knows, beside ``hf:DIR``.
NAMES = ("llama-7b", "gptj-6b", "bert-base", "resnet-50")
#: Where weights come from: nowhere (shapes only), seeded random numbers, or the files of an ``hf:DIR``.
WEIGHTS = ("none", "random", "file")
DTYPES = ("f32", "bf16")
DEFAULT_TOKENS = 128
#: A run holds its weights this many times: the model, what is hoisted out of it, and eager's copy.
COPIES_OF_WEIGHTS = 3
_SEED = 0


@dataclass(frozen=True)
class Size:
    """How much of a model is planned, and with which weights.

    Parameters
    ----------
    tokens : int, optional
        Tokens of the prompt; 128 by default. Not for images, nor with `decode`.
    decode : bool, default False
        One new token after `context` cached positions.
    context : int, optional
        Positions in the cache; 128 by default. Only with `decode`.
    layers : int, optional
        Keep the first layers only.
    weights : {"none", "random", "file"}, optional
        Where weights come from; `load` says what the default is.
    """

    tokens: int | None = None
    decode: bool = False
    context: int | None = None
    layers: int | None = None
    weights: str | None = None

    def given(self) -> list[str]:
        """Name the options that are not at their defaults."""
        return [name for name in ("tokens", "decode", "context", "layers", "weights") if getattr(self, name)]


@dataclass(frozen=True)
class Blueprint:
    """A model that is described, not built.

    Parameters
    ----------
    name : str
        As the user wrote it.
    kind : {"causal", "encoder", "image"}
        As `nearbank.model_configurations.kind_of` returns it.
    config : transformers.PreTrainedConfig
        Its configuration, with `layers` applied.
    size : Size
        With all defaults filled in.
    batch : int
        Rows of the input.
    dtype : {"f32", "bf16"}
        Type of weights and activations.
    folder : str or None
        Local folder of an ``hf:DIR``.
    """

    name: str
    kind: str
    config: Any
    size: Size
    batch: int
    dtype: str
    folder: str | None = None

    def identity(self) -> dict[str, Any]:
        """Everything that the exported graph depends on, except versions of software; for JSON."""
        size = self.size
        return {
            "kind": self.kind,
            "config": self.config.to_dict(),
            "size": [size.tokens, size.decode, size.context],
            "batch": self.batch,
            "dtype": self.dtype,
        }


def is_large(spec) -> bool:
    """Say whether a SPEC is one of these models.

    Parameters
    ----------
    spec : str or torch.nn.Module
        As for `nearbank.plan`.

    Returns
    -------
    bool
        True for a name of `NAMES` and for ``hf:DIR``.
    """
    return isinstance(spec, str) and (spec in NAMES or spec.startswith(model_configurations.HUGGING_FACE_PREFIX))


def blueprint(spec: str, size: Size, batch: int | None, dtype: str | None, execute: bool) -> Blueprint:
    """Read and check what is to be built, without building it.

    Parameters
    ----------
    spec : str
        A name of `NAMES`, or ``hf:DIR``.
    size : Size
        Options of the user.
    batch : int, optional
        Rows of the input, 1 by default.
    dtype : {"f32", "bf16"}, optional
        Type of the weights; f32 by default.
    execute : bool
        The model will run: weights are then real by default.

    Returns
    -------
    Blueprint
        With all defaults filled in: ``weights`` of a built-in is "none" for a plan and "random" for a run (always
        "random" for ``bert-base`` and ``resnet-50``), of an ``hf:DIR`` "none" for a plan and "file" for a run.

    Raises
    ------
    nearbank.errors.UserError
        NB0201 no such folder, NB0208 option that does not suit the model, NB0212 folder that cannot be read.
    """
    folder, config = model_configurations.folder_of(spec), model_configurations.read(spec)
    kind = model_configurations.kind_of(config, folder)
    _check(spec, kind, config, size, dtype, folder)
    if size.layers:
        _keep_layers(config, size.layers)
    is_small = spec in ("bert-base", "resnet-50")
    default = ("file" if folder else "random") if execute or is_small else "none"
    filled = Size(
        tokens=None if kind == "image" or size.decode else size.tokens or DEFAULT_TOKENS,
        decode=size.decode,
        context=(size.context or DEFAULT_TOKENS) if size.decode else None,
        layers=size.layers,
        weights=size.weights or default,
    )
    positions = filled.tokens or (filled.context or 0) + 1
    limit = getattr(config, "max_position_embeddings", None)
    if kind != "image" and limit and positions > limit:
        option = "context" if size.decode else "tokens"
        limit -= bool(size.decode)
        raise _invalid(option, f"at most {limit}, the positions that the model has", str(getattr(filled, option)))
    return Blueprint(spec, kind, config, filled, batch or 1, dtype or "f32", folder)


def build(plan: Blueprint):
    """Create the model that a blueprint describes.

    Parameters
    ----------
    plan : Blueprint
        As `blueprint` returns it.

    Returns
    -------
    tuple of (torch.nn.Module, tuple of torch.Tensor)
        The module in evaluation mode and its inputs; on the meta device where ``weights`` is "none".

    Raises
    ------
    nearbank.errors.UserError
        NB0213 when weights that were asked for do not fit in memory, NB0212 when their files cannot be read.
    """
    import torch

    dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[plan.dtype]
    with torch.device("meta"):
        model = _from_config(plan, dtype)
    if plan.size.weights != "none":
        _check_memory(plan, sum(tensor.nbytes for tensor in model.parameters()))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(_SEED)
            model = _from_files(plan, dtype) if plan.size.weights == "file" else _from_config(plan, dtype)
    device = next(model.parameters()).device
    with torch.random.fork_rng(devices=[]), torch.device(device):
        torch.manual_seed(_SEED)
        module, inputs = _wrap(model, plan, dtype)
    return module.eval(), inputs


def available_memory() -> int:
    """Return the memory in bytes that this process can still take without swapping.

    Returns
    -------
    int
        ``MemAvailable`` of the kernel, or less where a control group limits this process.
    """
    with open("/proc/meminfo", encoding="ascii") as lines:
        values = {key: int(rest.split()[0]) * 1024 for key, _, rest in (line.partition(":") for line in lines)}
    free = values.get("MemAvailable", values["MemTotal"])
    try:
        with open("/sys/fs/cgroup/memory.max", encoding="ascii") as file:
            limit = file.read().strip()
        with open("/sys/fs/cgroup/memory.current", encoding="ascii") as file:
            used = int(file.read())
    except (OSError, ValueError):
        return free
    return free if limit == "max" else min(free, max(0, int(limit) - used))


def _check_memory(plan: Blueprint, weight_bytes: int) -> None:
    needed, available = weight_bytes * COPIES_OF_WEIGHTS, available_memory()
    if needed <= available:
        return
    layers = ", or run fewer layers (--layers 2)" if plan.kind != "image" else ""
    raise make_error(
        "user",
        "NB0213",
        "the model does not fit in memory",
        where=plan.name,
        expected=f"at most {available} B, the memory that is available",
        actual=f"{needed} B: {weight_bytes} B of weights, held {COPIES_OF_WEIGHTS} times by a run",
        fix=f"use nearbank plan, which needs no weights (--weights none){layers}",
    )


def _auto_class(kind: str):
    import transformers

    names = {"causal": "AutoModelForCausalLM", "encoder": "AutoModel", "image": "AutoModelForImageClassification"}
    return getattr(transformers, names[kind])


def _from_config(plan: Blueprint, dtype):
    try:
        return _auto_class(plan.kind).from_config(plan.config, dtype=dtype)
    except Exception as error:
        if plan.folder is None:
            raise
        raise model_configurations.unreadable(plan.folder, error) from error


def _from_files(plan: Blueprint, dtype):
    from transformers.utils import logging

    logging.disable_progress_bar()
    try:
        return _auto_class(plan.kind).from_pretrained(
            plan.folder, config=plan.config, local_files_only=True, dtype=dtype
        )
    except Exception as error:
        raise model_configurations.unreadable(plan.folder, error) from error


def _wrap(model, plan: Blueprint, dtype):
    import torch

    from nearbank.models import DecodeStep, FirstOutput, Logits

    config, size = plan.config, plan.size
    if plan.kind == "image":
        edge = getattr(config, "image_size", None) or 224
        channels = getattr(config, "num_channels", 3)
        height, width = edge if isinstance(edge, (list, tuple)) else (edge, edge)
        return FirstOutput(model, "pixel_values"), (torch.randn(plan.batch, channels, height, width, dtype=dtype),)
    count = 1 if size.decode else size.tokens
    ids = torch.randint(0, config.vocab_size, (plan.batch, count))
    if plan.kind == "encoder":
        return FirstOutput(model, "input_ids"), (ids,)
    if not size.decode:
        return Logits(model), (ids,)
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    shape = (plan.batch, heads, size.context, width)
    past = [torch.randn(shape, dtype=dtype) for _ in range(2 * config.num_hidden_layers)]
    return DecodeStep(model), (ids, *past)


def _keep_layers(config, layers: int) -> None:
    config.num_hidden_layers = layers
    if getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[:layers]


def _check(spec, kind, config, size: Size, dtype, folder) -> None:
    if dtype is not None and dtype not in DTYPES:
        raise unknown_name("user", "NB0208", "value is not valid for this option", dtype, DTYPES, where="option dtype")
    if size.weights is not None and size.weights not in WEIGHTS:
        raise unknown_name(
            "user", "NB0208", "value is not valid for this option", size.weights, WEIGHTS, where="option weights"
        )
    if size.weights == "file" and folder is None:
        raise _invalid("weights", "none or random; only hf:DIR has weights in files", "file")
    if size.decode and kind != "causal":
        raise _invalid("decode", "a language model that generates text, such as llama-7b", spec)
    if size.decode and size.tokens:
        raise _invalid("tokens", "context instead: decoding takes one new token", str(size.tokens))
    if size.context and not size.decode:
        raise _invalid("context", "decode beside it", str(size.context))
    if kind == "image" and (size.tokens or size.layers):
        raise _invalid("tokens" if size.tokens else "layers", "a model of tokens; this one takes images", spec)
    for option in ("tokens", "context", "layers"):
        value = getattr(size, option)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise _invalid(option, "a positive integer", repr(value))
    whole = getattr(config, "num_hidden_layers", None)
    if size.layers and whole and size.layers > whole:
        raise _invalid("layers", f"at most {whole}, the layers that the model has", str(size.layers))


def _invalid(option: str, expected: str, actual: str):
    return make_error(
        "user",
        "NB0208",
        "value is not valid for this option",
        where=f"option {option}",
        expected=expected,
        actual=actual,
    )


def cache_keyword(model) -> str:
    """Name the argument through which a language model takes its cache.

    Parameters
    ----------
    model : torch.nn.Module
        A causal language model of transformers.

    Returns
    -------
    str
        ``cache`` since transformers 5.22 or so, ``past_key_values`` before and in models that keep that name.
    """
    return "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"
