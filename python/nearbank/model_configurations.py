# SPDX-License-Identifier: Apache-2.0
"""Configurations of full-size models, and those of local Hugging Face folders."""

from __future__ import annotations

import os

from nearbank.errors import make_error

HUGGING_FACE_PREFIX = "hf:"


def read(spec: str):
    """Return the configuration that a SPEC names.

    Parameters
    ----------
    spec : str
        A key of `BUILT_IN`, or ``hf:DIR``.

    Returns
    -------
    transformers.PreTrainedConfig
        A new object; the caller may change it.

    Raises
    ------
    nearbank.errors.UserError
        NB0201 no such folder, NB0212 no configuration that transformers knows.
    """
    folder = folder_of(spec)
    return BUILT_IN[spec]() if folder is None else _read_folder(folder)


def folder_of(spec: str) -> str | None:
    """Return DIR of ``hf:DIR``, None for other SPECs."""
    return spec.removeprefix(HUGGING_FACE_PREFIX) if spec.startswith(HUGGING_FACE_PREFIX) else None


def kind_of(config, folder: str | None) -> str:
    """Say what a model takes and returns.

    Parameters
    ----------
    config : transformers.PreTrainedConfig
        Its configuration.
    folder : str or None
        Where that was read, for the message.

    Returns
    -------
    {"causal", "encoder", "image"}
        Tokens to logits of the next token, tokens to hidden states, or images to logits of classes.

    Raises
    ------
    nearbank.errors.UserError
        NB0212 for other kinds.
    """
    architecture = (getattr(config, "architectures", None) or [""])[0]
    if getattr(config, "is_encoder_decoder", False):
        raise _unsupported_folder(folder, config, "models with an encoder and a decoder are not supported")
    if architecture.endswith(("ForCausalLM", "LMHeadModel")):
        return "causal"
    takes = _main_input(config)
    if takes == "pixel_values" and hasattr(config, "num_channels"):
        return "image"
    if takes != "input_ids" or not hasattr(config, "vocab_size"):
        raise _unsupported_folder(folder, config, f"model_type {config.model_type!r} takes neither tokens nor images")
    return "encoder"


def _main_input(config) -> str:
    from transformers import MODEL_MAPPING

    found = MODEL_MAPPING.get(type(config), None)
    model = found[0] if isinstance(found, (tuple, list)) else found
    return getattr(model, "main_input_name", "")


def _read_folder(folder: str):
    if not os.path.isdir(folder):
        raise make_error(
            "user",
            "NB0201",
            "the model cannot be found",
            where=f"{HUGGING_FACE_PREFIX}{folder}",
            expected="an existing folder with a config.json; nothing is downloaded",
            actual="no such folder",
            fix="check the path",
        )
    if not os.path.isfile(os.path.join(folder, "config.json")):
        raise unreadable(folder, "there is no config.json")
    from transformers import AutoConfig

    try:
        return AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:
        raise unreadable(folder, error) from error


def unreadable(folder: str, cause):
    """Return the error NB0212 for a folder; `cause` is an exception or a text."""
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    return make_error(
        "user",
        "NB0212",
        "the Hugging Face folder cannot be used",
        where=f"{HUGGING_FACE_PREFIX}{folder}",
        expected="config.json of a model type that transformers knows; to run it, its weights too",
        actual=(lines[0] if lines else type(cause).__name__)[:200],
        fix="save the model with model.save_pretrained(DIR), or plan it through file.py:function",
    )


def _unsupported_folder(folder: str, config, reason: str):
    return unreadable(folder, f"{reason} ({type(config).__name__})")


def _llama_7b():
    from transformers import LlamaConfig

    # The defaults of LlamaConfig are LLaMA-7B's sizes; they are spelled out so that no release changes them.
    return LlamaConfig(
        vocab_size=32000,
        hidden_size=4096,
        intermediate_size=11008,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=32,
        max_position_embeddings=2048,
        architectures=["LlamaForCausalLM"],
    )


def _gptj_6b():
    from transformers import GPTJConfig

    return GPTJConfig(
        vocab_size=50400,
        n_positions=2048,
        n_embd=4096,
        n_layer=28,
        n_head=16,
        rotary_dim=64,
        architectures=["GPTJForCausalLM"],
    )


def _bert_base():
    from transformers import BertConfig

    return BertConfig(
        vocab_size=30522,
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
        max_position_embeddings=512,
    )


def _resnet_50():
    from transformers import ResNetConfig

    return ResNetConfig(depths=[3, 4, 6, 3], hidden_sizes=[256, 512, 1024, 2048], num_labels=1000)


#: Name -> function that returns its configuration.
BUILT_IN = {"llama-7b": _llama_7b, "gptj-6b": _gptj_6b, "bert-base": _bert_base, "resnet-50": _resnet_50}
