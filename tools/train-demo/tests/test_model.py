"""The training model against transformers, the quantisers against their definition."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))
import attention
import mxfp4
from config import Config
from model import Model

SMALL = replace(Config(), vocab=160, layers=3, width=64, heads=4, kv_heads=2, experts=6, top_k=3, expert_width=32,
                context=512, window=9)


def random_model(config, **options):
    model = Model(config, dtype=torch.float32, **options)
    draw = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, p in model.named_parameters():
            p += torch.randn(p.shape, generator=draw) * (0.5 if name == "sinks" else 0.15)
    return model


def released(config, model):
    """The same weights in transformers' implementation."""
    transformers = pytest.importorskip("transformers")
    c = config
    theirs = transformers.GptOssForCausalLM(transformers.GptOssConfig(
        vocab_size=c.vocab, hidden_size=c.width, num_hidden_layers=c.layers, num_attention_heads=c.heads,
        num_key_value_heads=c.kv_heads, head_dim=c.head_dim, num_local_experts=c.experts,
        num_experts_per_tok=c.top_k, intermediate_size=c.expert_width, sliding_window=c.window,
        max_position_embeddings=c.context, rms_norm_eps=c.eps, tie_word_embeddings=False, attention_bias=True,
        pad_token_id=0, bos_token_id=0, eos_token_id=0,
        attn_implementation="eager", rope_parameters={
            "rope_type": "yarn", "rope_theta": c.theta, "factor": c.yarn_factor, "beta_fast": c.beta_fast,
            "beta_slow": c.beta_slow, "truncate": False, "original_max_position_embeddings": c.original_context}))
    p = dict(model.named_parameters())
    state = {"model.embed_tokens.weight": p["embedding"], "lm_head.weight": p["head"], "model.norm.weight": p["final_norm"]}
    for i in range(c.layers):
        at = f"model.layers.{i}."
        for ours, name in [("q", "q_proj"), ("k", "k_proj"), ("v", "v_proj"), ("o", "o_proj")]:
            state[f"{at}self_attn.{name}.weight"] = p[ours][i]
            state[f"{at}self_attn.{name}.bias"] = p[f"{ours}_bias"][i]
        state[at + "self_attn.sinks"] = p["sinks"][i]
        state[at + "input_layernorm.weight"] = p["attn_norm"][i]
        state[at + "post_attention_layernorm.weight"] = p["ffn_norm"][i]
        state[at + "mlp.router.weight"], state[at + "mlp.router.bias"] = p["router"][i], p["router_bias"][i]
        gate, up = p["up"][i].chunk(2, 1)
        state[at + "mlp.experts.gate_up_proj"] = torch.stack([gate, up], 2).flatten(1, 2).transpose(1, 2)
        gate, up = p["up_bias"][i].chunk(2, 1)
        state[at + "mlp.experts.gate_up_proj_bias"] = torch.stack([gate, up], 2).flatten(1)
        state[at + "mlp.experts.down_proj"] = p["down"][i].transpose(1, 2)
        state[at + "mlp.experts.down_proj_bias"] = p["down_bias"][i]
    theirs.load_state_dict({name: value.detach().contiguous() for name, value in state.items()})
    return theirs.eval()


def test_logits_and_gradients_are_those_of_transformers():
    model = random_model(SMALL)
    theirs = released(SMALL, model)
    tokens = torch.randint(SMALL.vocab, (2, 300), generator=torch.Generator().manual_seed(1))
    ours = model.logits(tokens)
    expected = theirs(tokens).logits
    assert (ours - expected).abs().max() < 1e-4 * expected.abs().max()
    ours.square().mean().backward()
    expected.square().mean().backward()
    layer = theirs.model.layers[1]
    for mine, other in [
        (model.sinks.grad[1], layer.self_attn.sinks.grad),
        (model.router.grad[1], layer.mlp.router.weight.grad),
        (model.down.grad[1], layer.mlp.experts.down_proj.grad.transpose(1, 2)),
        (model.down_bias.grad[1], layer.mlp.experts.down_proj_bias.grad),
        (model.up_bias.grad[1][:, : SMALL.expert_width], layer.mlp.experts.gate_up_proj_bias.grad[:, ::2]),
        (model.embedding.grad[1:], theirs.model.embed_tokens.weight.grad[1:]),
    ]:
        assert (mine - other).abs().max() < 1e-3 * other.abs().max()


@pytest.mark.skipif(attention.flex_attention is None, reason="this torch has no flex_attention")
@pytest.mark.parametrize("window", [None, 9])
def test_fused_attention_is_plain_attention(window):
    draw = torch.Generator().manual_seed(3)
    q, k, v = (torch.randn(2, heads, 128, 16, generator=draw) for heads in (4, 2, 2))
    sinks = torch.linspace(-1, 2, 4)
    # The CPU has no backward pass of flex_attention; train.py's --smoke compares gradients where there is one.
    one = attention.fused(q, k, v, sinks, attention.fused_mask(window, 128, "cpu"))
    other = attention.plain(q, k, v, sinks, attention.plain_mask(window, 128, "cpu"))
    torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(not hasattr(torch, "_grouped_mm"), reason="this torch has no _grouped_mm")
def test_grouped_products_are_those_of_a_loop():
    import moe
    draw = torch.Generator().manual_seed(4)
    rows, weights = torch.randn(64, 32, generator=draw).bfloat16(), torch.randn(4, 48, 32, generator=draw).bfloat16()
    ends = torch.tensor([10, 10, 40, 64], dtype=torch.int32)
    results = []
    for product in (moe.grouped, moe.looped):
        a, b = rows.clone().requires_grad_(), weights.clone().requires_grad_()
        out = product(a, b, ends)
        out.float().square().sum().backward()
        results.append((out, a.grad, b.grad))
    for one, other in zip(*results):
        torch.testing.assert_close(one, other, rtol=2e-2, atol=2e-1)


def test_mxfp4_bytes_hold_what_training_saw():
    w = torch.randn(40, 96, generator=torch.Generator().manual_seed(5)) * torch.logspace(-8, 3, 40)[:, None]
    w[3] = 0.0
    data = mxfp4.encode(w)
    assert len(data) == w.numel() // 32 * 17
    values = torch.from_numpy(mxfp4.decode(data)).view_as(w)
    assert torch.equal(values, mxfp4.straight_through(w) + 0.0)
    assert torch.equal(torch.from_numpy(mxfp4.decode(mxfp4.encode(values))).view_as(w), values)


def test_mxfp4_takes_the_best_scale_of_all():
    w = torch.randn(200, 32, generator=torch.Generator().manual_seed(6)).numpy()
    table = np.array(mxfp4.MAGNITUDES, np.float32)
    errors = []
    for e in range(-8, 4):
        near = np.abs(np.abs(w)[..., None] / 2.0**e - table).min(-1) * 2.0**e
        errors.append((near**2).sum(-1))
    got = ((mxfp4.quantised(torch.from_numpy(w))[0].numpy() - w) ** 2).sum(-1)
    np.testing.assert_allclose(got, np.min(errors, 0), rtol=1e-4)


def test_q8_0_is_within_half_a_step():
    w = torch.randn(8, 64, generator=torch.Generator().manual_seed(8))
    back = torch.from_numpy(mxfp4.decode_q8_0(mxfp4.encode_q8_0(w))).view_as(w)
    step = w.view(-1, 32).abs().amax(-1, keepdim=True) / 127
    assert ((back - w).view(-1, 32).abs() <= step * 0.6).all()
