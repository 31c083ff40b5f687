# SPDX-License-Identifier: Apache-2.0
"""Says where in the user's model an FX node comes from: module path, operator, file and line."""

from __future__ import annotations

import functools
import os
import re
from dataclasses import dataclass

#: Attribute under which capture wraps the user's module; no part of a module path.
ROOT_NAME = "nearbank_root"

_CAPTURE_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "capture.py")
_FRAME = re.compile(r'File "([^"]+)", line ([0-9]+)')
_MODULES_ACCESS = re.compile(r"\._modules\['([^']*)'\]|\.__getattr__\('([^']*)'\)|\['([^']*)'\]|\[([0-9]+)\]")


@dataclass(frozen=True)
class NodeSource:
    """Origin of one FX node.

    Parameters
    ----------
    module_path : str
        Dotted path of the module that ran the operator, "" at the top.
    torch_op : str
        Operator without overload, such as ``aten.mm``.
    file : str
        Path of the user's source file, "" when unknown.
    line : int
        Line in `file`, counted from 1; 0 when unknown.
    """

    module_path: str
    torch_op: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{os.path.basename(self.file)}:{self.line}" if self.file else "<unknown>"


def op_name(node) -> str:
    """Return the operator of `node` without its overload: ``aten.mm``.

    Parameters
    ----------
    node : torch.fx.Node
        A node of any kind.

    Returns
    -------
    str
        ``namespace.operator``, or the name of the Python function that the node calls.
    """
    packet = getattr(node.target, "overloadpacket", None)
    if packet is not None:
        return str(packet)
    return getattr(node.target, "__name__", str(node.target))


def clean_module_path(raw: str) -> str:
    """Turn dynamo's and export's spelling of a module's path into the dotted one.

    Parameters
    ----------
    raw : str
        For example ``L['self']._modules['encoder'].layer[0]`` or ``L__self___encoder``.

    Returns
    -------
    str
        For example ``encoder.layer.0``.

    Examples
    --------
    >>> clean_module_path("L['self'].encoder._modules['layer']._modules['0']")
    'encoder.layer.0'
    """
    path = _MODULES_ACCESS.sub(lambda match: "." + next(g for g in match.groups() if g is not None), raw)
    path = re.sub(r"^(L\.|G\.)?(self|fn|mod)(\.|$)", "", path.lstrip("."))
    path = re.sub(r"^L__self___?", "", path)
    path = re.sub(rf"^{ROOT_NAME}(\.|$)", "", path)
    return path.strip(".")


def source_of(node) -> NodeSource:
    """Return where `node` comes from, as far as its metadata tell.

    Parameters
    ----------
    node : torch.fx.Node
        A node of an ATen graph.

    Returns
    -------
    NodeSource
        The innermost frame of user code (outside PyTorch itself) and the innermost module.
    """
    file, line = _user_frame(node.meta.get("stack_trace") or "")
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
    path = ""
    for entry in stack.values():
        path = clean_module_path(entry[0] if isinstance(entry, tuple) else str(entry))
    return NodeSource(path, op_name(node), file, line)


def _user_frame(stack_trace: str) -> tuple[str, int]:
    frames = [frame for frame in _FRAME.findall(stack_trace) if not frame[0].startswith("<")]
    for file, line in reversed(frames):
        if not is_framework_file(file):
            return file, int(line)
    return (frames[-1][0], int(frames[-1][1])) if frames else ("", 0)


@functools.cache
def _framework_roots() -> tuple[str, ...]:
    import torch

    return (os.path.dirname(torch.__file__) + os.sep,)


def is_framework_file(file: str) -> bool:
    """Say whether a source file belongs to PyTorch, or to the shared wrappers of transformers.

    Parameters
    ----------
    file : str
        Absolute path.

    Returns
    -------
    bool
        True where the file says nothing about the user's model.
    """
    # Wrappers around every Hugging Face call say nothing about the model.
    if f"{os.sep}transformers{os.sep}" in file and f"{os.sep}transformers{os.sep}models{os.sep}" not in file:
        return not file.endswith(("activations.py", "pytorch_utils.py"))
    return file.startswith(_framework_roots()) or file == _CAPTURE_FILE
