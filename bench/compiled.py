# SPDX-License-Identifier: Apache-2.0
"""Compiles a built-in model once, for benchmarks that execute it many times."""

from nearbank import specs
from nearbank.capture import CapturedModel, capture
from nearbank.large_models import Size
from nearbank.program import CompiledGraph
from nearbank.settings import Settings

#: One layer of a full-size model with its embedding and head, weights random.
LAYERS = {
    "llama-7b-layer-128-tokens": ("llama-7b", Size(tokens=128, layers=1, weights="random")),
    "llama-7b-layer-1-token": ("llama-7b", Size(decode=True, context=128, layers=1, weights="random")),
}


def compile_model(spec: str, **options) -> tuple[CapturedModel, CompiledGraph]:
    """Return the captured model and its planned graph; `spec` may be a name of LAYERS."""
    name, size = LAYERS.get(spec, (spec, None))
    model = specs.load(name, size=size, execute=True)
    captured = capture(model.module, model.example_inputs, training=model.training)
    settings = Settings.from_options(options, "bench")
    graph = CompiledGraph(captured.graph_module, settings, captured.parameters, captured.argument_names, model.name)
    graph.plan()
    return captured, graph


def timed_launches(graph: CompiledGraph) -> list[dict]:
    """Launches of the last execution, without those of hoisted nests."""
    hoisted = {nest["id"] for nest in graph.plan_document["nests"] if nest["hoisted"]}
    return [launch for launch in graph.record["launches"] if launch["nest"] not in hoisted]
