"""The families: one small configuration each, with dimensions that no two uses of a size share.

`class` is the model class of `transformers`, `tokenizer` the kind of vocabulary and its pre-tokenizer, `embed` the size of
embeddings where the model multiplies them, `notes` what a reader of the fixture must know.
"""

BYTES = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
PIECES = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": None}
GEMMA = {"bos_token_id": 2, "eos_token_id": 1, "pad_token_id": 0}


def rope(theta, kind="default", **more):
    return {"rope_type": kind, "rope_theta": theta, **more}


def sizes(vocab, hidden, layers, heads, kv_heads, inner, head_dim=None, positions=512):
    """The sizes that every configuration has; `inner` is the width of the dense layer or of one expert."""
    found = {
        "vocab_size": vocab, "hidden_size": hidden, "intermediate_size": inner, "num_hidden_layers": layers,
        "num_attention_heads": heads, "num_key_value_heads": kv_heads, "max_position_embeddings": positions,
    }
    return found if head_dim is None else {**found, "head_dim": head_dim}


GPT_OSS_ROPE = rope(
    150000.0, "yarn", factor=32.0, beta_fast=32.0, beta_slow=1.0, truncate=False, original_max_position_embeddings=32)

FAMILIES = {
    "llama": {
        "class": "LlamaForCausalLM", "tokenizer": "llama",
        "config": {
            **sizes(197, 40, 2, 5, 1, 72, head_dim=16), "rms_norm_eps": 1e-6, "tie_word_embeddings": False,
            "rope_parameters": rope(50000.0), **PIECES,
        },
    },
    "mixtral": {
        "class": "MixtralForCausalLM", "tokenizer": "llama",
        "config": {
            **sizes(193, 40, 2, 3, 1, 16, head_dim=16), "num_local_experts": 6, "num_experts_per_tok": 3,
            "rms_norm_eps": 1e-5, "sliding_window": None, "rope_parameters": rope(1000000.0), **PIECES,
        },
    },
    "llama3_rope": {
        "class": "LlamaForCausalLM", "tokenizer": "gpt2:llama-bpe",
        "config": {
            **sizes(201, 48, 2, 3, 3, 48, head_dim=20), "rms_norm_eps": 1e-5, "tie_word_embeddings": True,
            "rope_parameters": rope(
                30000.0, "llama3", factor=4.0, low_freq_factor=1.0, high_freq_factor=3.0,
                original_max_position_embeddings=48),
            **BYTES,
        },
    },
    "qwen2": {
        "class": "Qwen2ForCausalLM", "tokenizer": "gpt2:qwen2",
        "config": {
            **sizes(199, 48, 3, 6, 2, 40), "rms_norm_eps": 1e-6, "tie_word_embeddings": True,
            "rope_parameters": rope(100000.0), **BYTES,
        },
    },
    "qwen3": {
        "class": "Qwen3ForCausalLM", "tokenizer": "gpt2:qwen2",
        "config": {
            **sizes(195, 40, 2, 6, 2, 64, head_dim=12), "rms_norm_eps": 1e-6, "tie_word_embeddings": False,
            "rope_parameters": rope(1000000.0), **BYTES,
        },
    },
    "qwen3_moe": {
        "class": "Qwen3MoeForCausalLM", "tokenizer": "gpt2:qwen2",
        "config": {
            **sizes(194, 40, 2, 4, 1, 48, head_dim=16), "moe_intermediate_size": 12, "num_experts": 7,
            "num_experts_per_tok": 2, "norm_topk_prob": True, "rms_norm_eps": 1e-6,
            "rope_parameters": rope(1000000.0), **BYTES,
        },
    },
    "gpt_oss": {
        "class": "GptOssForCausalLM", "tokenizer": "gpt2:gpt-4o",
        "config": {
            **sizes(197, 32, 3, 3, 1, 12, head_dim=16, positions=1024), "num_local_experts": 6,
            "num_experts_per_tok": 2, "sliding_window": 5, "rms_norm_eps": 1e-5,
            "rope_parameters": GPT_OSS_ROPE, **BYTES,
        },
        "alternative": {"rope_parameters": {**GPT_OSS_ROPE, "truncate": True}},
        "notes": ["p*_logits: YaRN correction dims not rounded, as released. alt_p*_logits: rounded, as llama.cpp does. The "
                  "GGUF does not say."],
    },
    "olmoe": {
        "class": "OlmoeForCausalLM", "tokenizer": "gpt2:olmo",
        "config": {
            **sizes(196, 40, 2, 5, 5, 14), "num_experts": 6, "num_experts_per_tok": 2, "norm_topk_prob": False,
            "rms_norm_eps": 1e-5, "rope_parameters": rope(10000.0), **BYTES,
        },
    },
    "olmoe_gqa": {
        "class": "OlmoeForCausalLM", "tokenizer": "gpt2:olmo",
        "config": {
            **sizes(198, 40, 2, 5, 1, 14), "num_experts": 6, "num_experts_per_tok": 2, "norm_topk_prob": False,
            "rms_norm_eps": 1e-5, "rope_parameters": rope(10000.0), **BYTES,
        },
        "notes": ["fewer KV heads than heads: the norm of k spans the narrower projection"],
    },
}
