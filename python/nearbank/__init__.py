# SPDX-License-Identifier: Apache-2.0
"""Nearbank takes PyTorch models to processing-in-memory machines, nest by nest, and explains each decision."""

from __future__ import annotations

__version__ = "0.1.0"

# Name -> module that defines it. Loaded on first use: `import nearbank` must not import torch.
_LAZY = {
    "plan": "nearbank.session",
    "run": "nearbank.session",
    "last_report": "nearbank.session",
    "Report": "nearbank.report",
    "PimLogisticRegression": "nearbank.estimators",
    "PimLinearSVC": "nearbank.estimators",
    "UserError": "nearbank.errors",
    "DeviceError": "nearbank.errors",
    "InternalError": "nearbank.errors",
}

__all__ = ["__version__", *_LAZY]


def __getattr__(name: str):
    if name in _LAZY:
        import importlib

        value = getattr(importlib.import_module(_LAZY[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'nearbank' has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_LAZY])
