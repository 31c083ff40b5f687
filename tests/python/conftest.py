# SPDX-License-Identifier: Apache-2.0
"""Fixtures shared by the Python tests."""

from __future__ import annotations

import importlib.util

import pytest


def has_core() -> bool:
    """Say whether the compiled extension is there."""
    return importlib.util.find_spec("nearbank._core") is not None


needs_core = pytest.mark.skipif(not has_core(), reason="nearbank._core is not built")


@pytest.fixture(autouse=True)
def _own_home(tmp_path, monkeypatch):
    """No test reads or writes the user's caches."""
    monkeypatch.setenv("NEARBANK_HOME", str(tmp_path / "nearbank-home"))


@pytest.fixture(scope="module")
def shared_home(tmp_path_factory):
    """Folder of caches that all tests of a file share."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def one_database(shared_home, _own_home, monkeypatch):
    """One profile database for the whole file: each distinct nest is profiled once."""
    import torch

    monkeypatch.setenv("NEARBANK_HOME", str(shared_home))
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture
def fake_core(monkeypatch):
    """Run compiled pieces in eager PyTorch: tests the front end without the compiler."""
    import torch
    from nearbank import program, rundoc

    pieces = []

    class FakePiece(program.CompiledPiece):
        def __init__(self, piece, options):
            assert "func.func @main" in piece.text
            self.inputs, self.outputs = piece.inputs, piece.outputs
            self.graph_module, self.text, self.options = piece.graph_module, piece.text, options
            self.layout = {"nests": []}
            pieces.append(self)

        def prepare(self, options, progress):
            return []

        def plan(self, options, progress):
            self.plan_options = options
            return {"nests": [], "summary": rundoc.NestNumbering([]).merge_plans([])["summary"], "remarks": []}

        def run(self, arguments, options):
            assert all(isinstance(argument, torch.Tensor) for argument in arguments)
            arguments = [argument.detach().contiguous() for argument in arguments]
            return [t.contiguous().clone() for t in self.graph_module(*arguments)], {"launches": [], "crossings": []}

    monkeypatch.setattr(program, "CompiledPiece", FakePiece)
    torch._dynamo.reset()
    yield pieces
    torch._dynamo.reset()
