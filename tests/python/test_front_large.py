# SPDX-License-Identifier: Apache-2.0
"""Full-size models: narrow stand-ins of their configurations, Hugging Face folders, the store of exported graphs."""

from __future__ import annotations

import json

import nearbank
import pytest
import torch
from conftest import has_core
from nearbank import comparison, graph_cache, large_models, model_configurations, specs
from nearbank.capture import capture
from nearbank.errors import UserError
from nearbank.large_models import Size


@pytest.fixture(autouse=True)
def narrow(monkeypatch, tmp_path):
    """Give the built-ins narrow layers, and a folder of its own to each test."""
    from transformers import BertConfig, GPTJConfig, LlamaConfig, ResNetConfig

    def llama():
        return LlamaConfig(
            vocab_size=64,
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=3,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=256,
            architectures=["LlamaForCausalLM"],
        )

    def gptj():
        return GPTJConfig(
            vocab_size=64,
            n_positions=256,
            n_embd=32,
            n_layer=3,
            n_head=4,
            rotary_dim=4,
            architectures=["GPTJForCausalLM"],
        )

    def bert():
        sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
        return BertConfig(vocab_size=64, max_position_embeddings=256, **sizes)

    def resnet():
        return ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], num_labels=5)

    narrow_ones = {"llama-7b": llama, "gptj-6b": gptj, "bert-base": bert, "resnet-50": resnet}
    monkeypatch.setattr(model_configurations, "BUILT_IN", narrow_ones)
    monkeypatch.setenv("NEARBANK_HOME", str(tmp_path / "home"))


def refused(spec, **options) -> str:
    with pytest.raises(UserError) as info:
        nearbank.plan(spec, **options)
    return str(info.value)


@pytest.mark.parametrize("spec", ["llama-7b", "gptj-6b"])
def test_a_plan_makes_no_weights(fake_core, spec):
    model = specs.load(spec, size=Size(tokens=8, layers=2))
    assert all(tensor.is_meta for tensor in (*model.module.parameters(), *model.example_inputs))
    assert nearbank.plan(spec, tokens=8, layers=2).runs[0]["eagerOps"] == []
    assert len(fake_core) == 1


@pytest.mark.parametrize("spec", ["llama-7b", "gptj-6b"])
def test_the_graph_without_weights_is_the_graph_with_weights(spec):
    graphs = []
    for weights in ("none", "random"):
        model = specs.load(spec, size=Size(tokens=8, layers=1, weights=weights))
        captured = capture(model.module, model.example_inputs)
        assert captured.is_meta == (weights == "none")
        nodes = [node for node in captured.graph_module.graph.nodes if "_assert_tensor_metadata" not in node.name]
        graphs.append([node.format_node() for node in nodes])
    assert graphs[0] == graphs[1]


@pytest.mark.parametrize("spec", ["llama-7b", "gptj-6b"])
def test_a_decoding_step_continues_the_prompt(spec):
    """Logits and cache after 5 + 1 tokens are those of 6 tokens at once."""
    module, (first, *past) = large_models.build(
        large_models.blueprint(spec, Size(decode=True, context=5, weights="random"), None, None, True)
    )
    heads = 2 if spec == "llama-7b" else 4
    assert [tuple(t.shape) for t in past] == [(1, heads, 5, 8)] * 6 and first.shape == (1, 1)
    tokens = torch.tensor([[3, 1, 4, 1, 5, 9]])
    model = module.model
    with torch.no_grad():
        prompt = model(input_ids=tokens[:, :5], use_cache=True)
        layers = getattr(prompt, module.keyword).layers
        logits, *new = module(tokens[:, 5:], *[t for layer in layers for t in (layer.keys, layer.values)])
        whole = model(input_ids=tokens, use_cache=True)
    # Sums run in another order; values are below 1.
    torch.testing.assert_close(logits[:, 0], whole.logits[:, 5], atol=1e-6, rtol=1e-5)
    expected = [t[:, :, 5:] for layer in getattr(whole, module.keyword).layers for t in (layer.keys, layer.values)]
    torch.testing.assert_close(new, expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize(
    ("spec", "options"),
    [
        ("llama-7b", {"tokens": 8, "layers": 2}),
        ("gptj-6b", {"tokens": 8, "layers": 2}),
        ("llama-7b", {"decode": True, "context": 7}),
        ("gptj-6b", {"decode": True, "context": 7, "layers": 1}),
        ("llama-7b", {"tokens": 8, "layers": 1, "dtype": "bf16"}),
        ("bert-base", {"tokens": 8}),
        ("resnet-50", {}),
    ],
)
def test_runs_agree_with_eager(fake_core, spec, options):
    entry = nearbank.run(spec, threads=1, **options).runs[0]
    assert entry["eagerOps"] == []
    assert len(fake_core) == 1
    assert entry["summary"]["maxAbsError"]["value"] <= entry["summary"]["errorBound"]["value"]


def test_options_that_do_not_suit_the_model_are_refused():
    assert "--" not in refused("mlp", tokens=8) and "option tokens" in refused("mlp", tokens=8)
    assert "option decode" in refused("bert-base", decode=True)
    assert "option tokens" in refused("llama-7b", decode=True, tokens=4)
    assert "option context" in refused("llama-7b", context=4)
    assert "at most 3, the layers that the model has" in refused("llama-7b", layers=4)
    assert "at most 256, the positions that the model has" in refused("llama-7b", tokens=257)
    assert "at most 255, the positions that the model has" in refused("llama-7b", decode=True, context=256)
    assert "option tokens" in refused("resnet-50", tokens=4)
    assert "option weights" in refused("llama-7b", weights="file")
    assert "did you mean 'random'?" in refused("llama-7b", weights="randm")
    assert "one of: f32, bf16" in refused("llama-7b", dtype="f64")


def test_a_run_that_does_not_fit_is_refused_before_weights_are_made(monkeypatch):
    monkeypatch.setattr(large_models, "available_memory", lambda: 1000)
    with pytest.raises(UserError) as info:
        nearbank.run("llama-7b", layers=1)
    count = sum(p.numel() for p in specs.load("llama-7b", size=Size(layers=1)).module.parameters())
    assert str(info.value) == (
        "error[NB0213]: the model does not fit in memory\n"
        "  where:    llama-7b\n"
        "  expected: at most 1000 B, the memory that is available\n"
        f"  actual:   {count * 12} B: {count * 4} B of weights, held 3 times by a run\n"
        "  fix:      use nearbank plan, which needs no weights (--weights none), or run fewer layers (--layers 2)\n"
        "  more:     nearbank explain NB0213"
    )


def test_available_memory_is_plausible():
    assert 0 < large_models.available_memory() < 1 << 50


def test_without_room_for_float64_eager_is_the_reference(fake_core, monkeypatch):
    monkeypatch.setattr("nearbank.session._double_bytes", lambda arguments: 1 << 60)
    entry = nearbank.run("llama-7b", tokens=8, layers=1, threads=1).runs[0]
    summary = entry["summary"]
    assert summary["eagerMaxAbsError"] is None
    assert summary["maxAbsError"]["value"] <= summary["errorBound"]["value"]
    assert any("outputs were compared with eager PyTorch itself" in message for message in entry["messages"])
    eager = [torch.tensor([1.0, 100.0])]
    assert comparison.compare_with_eager(["a"], eager, eager)["errorBound"]["value"] == pytest.approx(0.01)


def test_hugging_face_folders_are_planned_and_run(fake_core, tmp_path):
    from transformers import LlamaForCausalLM

    folder = tmp_path / "model"
    torch.manual_seed(1)
    saved = LlamaForCausalLM(model_configurations.BUILT_IN["llama-7b"]())
    saved.save_pretrained(folder)
    entry = nearbank.run(f"hf:{folder}", tokens=8, threads=1).runs[0]
    assert entry["summary"]["maxAbsError"]["value"] <= entry["summary"]["errorBound"]["value"]
    loaded = specs.load(f"hf:{folder}", execute=True).module.model
    assert torch.equal(loaded.lm_head.weight, saved.lm_head.weight)
    for file in folder.glob("*.safetensors"):
        file.unlink()
    assert nearbank.plan(f"hf:{folder}", decode=True, context=4).runs[0]["eagerOps"] == []
    with pytest.raises(UserError, match="NB0212"):
        nearbank.run(f"hf:{folder}", tokens=8)
    nearbank.run(f"hf:{folder}", tokens=8, weights="random", threads=1)


def test_unusable_hugging_face_folders_are_refused(tmp_path):
    assert "NB0201" in refused(f"hf:{tmp_path / 'nowhere'}")
    assert "there is no config.json" in refused(f"hf:{tmp_path}")
    config = tmp_path / "config.json"
    for text in ("{", "{}", '{"model_type": "no-such-model"}', '{"model_type": "t5"}', '{"model_type": "wav2vec2"}'):
        config.write_text(text)
        assert "error[NB0212]: the Hugging Face folder cannot be used" in refused(f"hf:{tmp_path}"), text


def test_the_second_plan_reads_the_exported_graph(fake_core, tmp_path, monkeypatch):
    (message,) = nearbank.plan("llama-7b", tokens=8).runs[0]["messages"]
    assert message.startswith("graph cache miss: the graph was exported and compiled in ")
    (path,) = (tmp_path / "home" / "graphs").iterdir()
    with monkeypatch.context() as patch:
        patch.setattr(large_models, "build", None)
        report = nearbank.plan("llama-7b", tokens=8)
    assert report.runs[0]["messages"] == [f"graph cache hit: the graph exported earlier was read from {path}"]
    first, second = fake_core
    assert (first.text, first.inputs, first.outputs, first.options) == (
        second.text,
        second.inputs,
        second.outputs,
        second.options,
    )
    sizes = (Size(tokens=8), Size(tokens=9), Size(tokens=8, layers=2), Size(decode=True, context=8))
    identities = [large_models.blueprint("llama-7b", size, None, None, False).identity() for size in sizes]
    identities.append(large_models.blueprint("llama-7b", sizes[0], None, "bf16", False).identity())
    assert len({graph_cache.path_for(identity) for identity in identities}) == 5
    path.write_bytes(b"damaged")
    assert "miss" in nearbank.plan("llama-7b", tokens=8).runs[0]["messages"][0]
    assert "hit" in nearbank.plan("llama-7b", tokens=8).runs[0]["messages"][0]


def test_a_stored_graph_of_another_schema_or_folder_is_not_read(fake_core, tmp_path, monkeypatch):
    import gzip

    path = tmp_path / "graph.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"schema": "other"}).encode()))
    assert graph_cache.load(path) is None
    blocker = tmp_path / "file"
    blocker.write_text("")
    monkeypatch.setenv("NEARBANK_HOME", str(blocker))
    assert "could not be kept" in nearbank.plan("llama-7b", tokens=8, db=str(tmp_path / "db")).runs[0]["messages"][0]


@pytest.mark.skipif(not has_core(), reason="needs the compiled extension")
def test_a_stored_graph_is_placed_like_a_fresh_one(tmp_path):
    database = str(tmp_path / "profiles.sqlite")
    reports = [nearbank.plan("gptj-6b", tokens=8, layers=1, threads=1, db=database) for _ in range(2)]
    first, second = ([(nest["key"], nest["where"], nest["hoisted"]) for nest in r.runs[0]["nests"]] for r in reports)
    assert first and first == second


@pytest.mark.slow
@pytest.mark.skipif(not has_core(), reason="needs the compiled extension")
@pytest.mark.parametrize("spec", ["llama-7b", "gptj-6b"])
def test_a_whole_model_is_planned_in_little_memory(spec, monkeypatch, tmp_path):
    import resource

    monkeypatch.undo()
    monkeypatch.setenv("NEARBANK_HOME", str(tmp_path))
    # Simulating it takes minutes, and no memory beyond that of its largest nest.
    entry = nearbank.plan(spec, simulate="none", host="native").runs[0]
    assert entry["eagerOps"] == []
    assert entry["summary"]["numNests"] > 500
    assert entry["summary"]["distinctNests"] < 60
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 < 6e9
