# SPDX-License-Identifier: Apache-2.0
"""The importer: text that MLIR 22 takes, with locations, and crashes that stay in the child."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time

import pytest
import torch
from front_models import SortsInTheMiddle, TwoLayers
from nearbank import importer, locations
from nearbank.capture import capture

MLIR_OPT = shutil.which("mlir-opt", path="/usr/lib/llvm-22/bin") or shutil.which("mlir-opt-22")


def _text(module, *inputs):
    result = importer.import_graph(capture(module, inputs).graph_module)
    assert result.failure is None
    return result.text


@pytest.mark.skipif(MLIR_OPT is None, reason="mlir-opt of MLIR 22 is not installed")
def test_text_parses_in_mlir_22():
    text = _text(TwoLayers(), torch.randn(3, 8))
    subprocess.run([MLIR_OPT, "--verify-each"], input=text, text=True, check=True, capture_output=True)


def test_weights_are_arguments_and_no_text():
    text = _text(TwoLayers(), torch.randn(3, 8))
    signature = re.search(r"func.func @main\((.*)\) -> ", text)[1]
    assert re.findall(r"tensor<[0-9x]+f32>", signature) == [
        "tensor<16x8xf32>",
        "tensor<16xf32>",
        "tensor<4x16xf32>",
        "tensor<4xf32>",
        "tensor<3x8xf32>",
    ]
    assert "dense_resource" not in text


def test_locations_name_module_operator_and_source_line():
    text = _text(TwoLayers(), torch.randn(3, 8))
    matmuls = re.findall(r"linalg\.matmul .* loc\((#loc\d+)\)", text)
    assert len(matmuls) == 2
    first = re.search(rf'{matmuls[0]} = loc\("up\|aten.mm"\((#loc\d+)\)\)', text)
    line = re.search(rf'{first[1]} = loc\("([^"]+)":(\d+):0\)', text)
    assert os.path.basename(line[1]) == "front_models.py"
    with open(line[1], encoding="utf-8") as source:
        assert "self.down(functional.gelu(self.up(x)))" in source.readlines()[int(line[2]) - 1]


def test_every_computation_of_a_backward_graph_has_a_source():
    class Loss(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = TwoLayers()

        def forward(self, x):
            return self.model(x).square().mean()

    graph = capture(Loss(), (torch.randn(3, 8),), training=True).graph_module
    products = [node for node in graph.graph.nodes if node.target is torch.ops.aten.mm.default]
    assert len(products) == 5
    sources = [locations.source_of(node) for node in products]
    assert {os.path.basename(source.file) for source in sources} == {"front_models.py"}
    assert {source.module_path for source in sources} == {"model.up", "model.down"}


def test_module_paths_are_cleaned():
    spellings = {
        "L['self'].encoder._modules['layer']._modules['0']": "encoder.layer.0",
        "L['self']._modules['encoder'].layer[3].attention": "encoder.layer.3.attention",
        "nearbank_root.encoder.layer.0": "encoder.layer.0",
        "nearbank_root": "",
        "": "",
    }
    assert {raw: locations.clean_module_path(raw) for raw in spellings} == spellings


def test_failure_names_operator_and_node():
    graph = capture(SortsInTheMiddle(), (torch.randn(3, 8),)).graph_module
    failure = importer.import_graph(graph).failure
    assert failure.kind == "tm_tensor"
    assert "tm_tensor.sort" in failure.message


@pytest.mark.parametrize("number", [signal.SIGABRT, signal.SIGSEGV, signal.SIGFPE])
def test_a_crash_of_the_importer_is_reported_and_the_next_graph_still_imported(monkeypatch, number):
    graph = capture(TwoLayers(), (torch.randn(3, 8),)).graph_module
    broken = capture(TwoLayers(), (torch.randn(5, 8),)).graph_module
    lower = importer._lower

    def crash(gm, node_locations):
        if gm is broken:
            os.kill(os.getpid(), number)
        return lower(gm, node_locations)

    monkeypatch.setattr(importer, "_lower", crash)
    first, second, third = importer.import_graphs([graph, broken, graph])
    assert first.text and third.text
    assert second.failure.kind == "crash"
    assert second.failure.signal == number.name


def test_a_real_crash_of_torch_mlir_does_not_reach_the_caller():
    class Empty(torch.nn.Module):
        def forward(self, x):
            return x.reshape(0, 4).sum(0) + 1

    graph = capture(Empty(), (torch.zeros(0, 8),)).graph_module
    result = importer.import_graph(graph)
    assert (result.text is None) != (result.failure is None)


def test_an_importer_that_hangs_is_stopped(monkeypatch):
    graph = capture(TwoLayers(), (torch.randn(3, 8),)).graph_module
    monkeypatch.setattr(importer, "_lower", lambda *_: time.sleep(60))
    started = time.monotonic()
    failure = importer.import_graph(graph, timeout_s=0.5).failure
    assert failure.kind == "timeout"
    assert time.monotonic() - started < 20
