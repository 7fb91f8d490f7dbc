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


GELU_TABLE = "llama.cpp looks GELU up in a table of f16, which is most of its difference"


def gemma4_layers(kinds):
    """Sliding (`s`) and full (`f`) layers, which turn different parts of the head."""
    names = {"s": "sliding_attention", "f": "full_attention"}
    return {
        "layer_types": [names[kind] for kind in kinds],
        "rope_parameters": {
            "sliding_attention": rope(5000.0),
            "full_attention": rope(200000.0, "proportional", partial_rotary_factor=0.5),
        },
    }


def linear_layers(kinds, keys, values, dim):
    """Gated delta nets (`l`) with so many key and value heads of `dim`, and full attention (`f`)."""
    names = {"l": "linear_attention", "f": "full_attention"}
    return {
        "layer_types": [names[kind] for kind in kinds], "full_attention_interval": kinds.index("f") + 1,
        "linear_conv_kernel_dim": 4, "linear_key_head_dim": dim, "linear_value_head_dim": dim,
        "linear_num_key_heads": keys, "linear_num_value_heads": values,
    }


GPT_OSS_ROPE = rope(
    150000.0, "yarn", factor=32.0, beta_fast=32.0, beta_slow=1.0, truncate=False, original_max_position_embeddings=32)

FAMILIES = {
    "llama": {
        "class": "LlamaForCausalLM", "tokenizer": "llama",
        "config": {
            **sizes(197, 40, 2, 5, 1, 60, head_dim=16), "rms_norm_eps": 1e-6, "tie_word_embeddings": False,
            "rope_parameters": rope(50000.0), **PIECES,
        },
    },
    "mixtral": {
        "class": "MixtralForCausalLM", "tokenizer": "llama",
        "config": {
            **sizes(193, 40, 2, 3, 1, 14, head_dim=16), "num_local_experts": 6, "num_experts_per_tok": 3,
            "rms_norm_eps": 1e-5, "sliding_window": None, "rope_parameters": rope(1000000.0), **PIECES,
        },
    },
    "llama3_rope": {
        "class": "LlamaForCausalLM", "tokenizer": "gpt2:llama-bpe",
        "config": {
            **sizes(201, 48, 2, 3, 3, 42, head_dim=20), "rms_norm_eps": 1e-5, "tie_word_embeddings": True,
            "rope_parameters": rope(
                30000.0, "llama3", factor=4.0, low_freq_factor=1.0, high_freq_factor=3.0,
                original_max_position_embeddings=48),
            **BYTES,
        },
    },
    "qwen2": {
        "class": "Qwen2ForCausalLM", "tokenizer": "gpt2:qwen2",
        "config": {
            **sizes(199, 48, 3, 6, 2, 34), "rms_norm_eps": 1e-6, "tie_word_embeddings": True,
            "rope_parameters": rope(100000.0), **BYTES,
        },
    },
    "qwen3": {
        "class": "Qwen3ForCausalLM", "tokenizer": "gpt2:qwen2",
        "config": {
            **sizes(195, 40, 2, 6, 2, 50, head_dim=12), "rms_norm_eps": 1e-6, "tie_word_embeddings": False,
            "rope_parameters": rope(1000000.0), **BYTES,
        },
    },
    "qwen3_moe": {
        "class": "Qwen3MoeForCausalLM", "tokenizer": "gpt2:qwen2",
        "config": {
            **sizes(194, 40, 2, 4, 1, 48, head_dim=16), "moe_intermediate_size": 10, "num_experts": 7,
            "num_experts_per_tok": 2, "norm_topk_prob": True, "rms_norm_eps": 1e-6,
            "rope_parameters": rope(1000000.0), **BYTES,
        },
    },
    "gpt_oss": {
        "class": "GptOssForCausalLM", "tokenizer": "gpt2:gpt-4o",
        "config": {
            **sizes(197, 32, 3, 3, 1, 10, head_dim=16, positions=1024), "num_local_experts": 6,
            "num_experts_per_tok": 2, "sliding_window": 5, "rms_norm_eps": 1e-5,
            "rope_parameters": GPT_OSS_ROPE, **BYTES,
        },
        "alternative": {"rope_parameters": {**GPT_OSS_ROPE, "truncate": True}},
        "notes": ["p*: YaRN correction dims not rounded, as released. alt_p*: rounded, as llama.cpp does. The "
                  "GGUF does not say."],
    },
    "olmoe": {
        "class": "OlmoeForCausalLM", "tokenizer": "gpt2:olmo",
        "config": {
            **sizes(196, 40, 2, 5, 5, 12), "num_experts": 6, "num_experts_per_tok": 2, "norm_topk_prob": False,
            "rms_norm_eps": 1e-5, "rope_parameters": rope(10000.0), **BYTES,
        },
    },
    "olmoe_gqa": {
        "class": "OlmoeForCausalLM", "tokenizer": "gpt2:olmo",
        "config": {
            **sizes(198, 40, 2, 5, 1, 12), "num_experts": 6, "num_experts_per_tok": 2, "norm_topk_prob": False,
            "rms_norm_eps": 1e-5, "rope_parameters": rope(10000.0), **BYTES,
        },
        "notes": ["fewer KV heads than heads: the norm of k spans the narrower projection"],
    },
    "minimax_m2": {
        "class": "MiniMaxM2ForCausalLM", "tokenizer": "gpt2:minimax-m2",
        "config": {
            **sizes(197, 40, 2, 6, 2, 10, head_dim=12), "rotary_dim": 8, "num_local_experts": 6, "num_experts_per_tok": 2,
            "scoring_func": "sigmoid", "use_routing_bias": True, "rms_norm_eps": 1e-6, "rope_theta": 50000.0, **BYTES,
        },
    },
    "deepseek_v2": {
        "class": "DeepseekV2ForCausalLM", "tokenizer": "gpt2:deepseek-llm",
        "config": {
            **sizes(193, 36, 3, 3, 3, 28), "moe_intermediate_size": 6, "kv_lora_rank": 20, "q_lora_rank": None,
            "qk_nope_head_dim": 12, "qk_rope_head_dim": 8, "v_head_dim": 16, "n_routed_experts": 6, "n_shared_experts": 2,
            "num_experts_per_tok": 2, "first_k_dense_replace": 1, "topk_method": "greedy", "n_group": 1, "topk_group": 1,
            "norm_topk_prob": False, "routed_scaling_factor": 1.0, "rms_norm_eps": 1e-6, "scoring_func": "softmax",
            "rope_parameters": rope(
                10000.0, "yarn", factor=16.0, beta_fast=32, beta_slow=1, mscale=0.707, mscale_all_dim=0.707,
                original_max_position_embeddings=24),
            **BYTES,
        },
        "notes": ["llama.cpp knows models without q_lora by their 26 or 27 layers and reads no others"],
    },
    "deepseek_v2_groups": {
        "class": "DeepseekV2ForCausalLM", "tokenizer": "gpt2:deepseek-llm",
        "config": {
            **sizes(194, 42, 2, 3, 3, 34), "moe_intermediate_size": 8, "kv_lora_rank": 20, "q_lora_rank": 28,
            "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 12, "n_routed_experts": 9, "n_shared_experts": 1,
            "num_experts_per_tok": 3, "first_k_dense_replace": 1, "topk_method": "group_limited_greedy", "n_group": 3,
            "topk_group": 2, "norm_topk_prob": False, "routed_scaling_factor": 4.0, "rms_norm_eps": 1e-6,
            "scoring_func": "softmax",
            "rope_parameters": rope(
                10000.0, "yarn", factor=40.0, beta_fast=32, beta_slow=1, mscale=1.0, mscale_all_dim=1.0,
                original_max_position_embeddings=24),
            **BYTES,
        },
        "notes": ["V2 ranks a group by its best expert; llama.cpp ranks it by the sum of the best two, as V3 does"],
    },
    "deepseek_v3": {
        "class": "DeepseekV3ForCausalLM", "tokenizer": "gpt2:deepseek-v3",
        "config": {
            **sizes(195, 40, 2, 3, 3, 34), "moe_intermediate_size": 8, "kv_lora_rank": 24, "q_lora_rank": 20,
            "qk_nope_head_dim": 12, "qk_rope_head_dim": 8, "v_head_dim": 16, "n_routed_experts": 9, "n_shared_experts": 1,
            "num_experts_per_tok": 2, "first_k_dense_replace": 1, "n_group": 3, "topk_group": 1, "norm_topk_prob": True,
            "routed_scaling_factor": 1.5, "rms_norm_eps": 1e-6, "num_nextn_predict_layers": 0, "scoring_func": "sigmoid",
            "rope_parameters": rope(
                10000.0, "yarn", factor=16.0, beta_fast=32, beta_slow=1, mscale=1.0, mscale_all_dim=1.0,
                original_max_position_embeddings=24),
            **BYTES,
        },
    },
    "glm4_moe": {
        "class": "Glm4MoeForCausalLM", "tokenizer": "gpt2:glm4", "mtp": "layer",
        "config": {
            **sizes(196, 32, 2, 6, 2, 36, head_dim=12), "moe_intermediate_size": 12, "n_routed_experts": 6,
            "n_shared_experts": 1, "num_experts_per_tok": 2, "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1,
            "norm_topk_prob": True, "routed_scaling_factor": 1.5, "use_qk_norm": False, "attention_bias": True,
            "rms_norm_eps": 1e-5, "num_nextn_predict_layers": 0,
            "rope_parameters": rope(1000000.0, partial_rotary_factor=0.5), **BYTES,
        },
        "notes": ["no norm of q and k, as in the smaller of the released models"],
    },
    "granitemoe": {
        "class": "GraniteMoeForCausalLM", "tokenizer": "gpt2:refact", "embed": 0.05,
        "config": {
            **sizes(198, 48, 3, 6, 2, 8), "num_local_experts": 5, "num_experts_per_tok": 2, "embedding_multiplier": 8.0,
            "logits_scaling": 5.0, "residual_multiplier": 0.6, "attention_multiplier": 0.25, "rms_norm_eps": 1e-6,
            "tie_word_embeddings": True, "rope_parameters": rope(20000.0), **BYTES,
        },
    },
    "phi3": {
        "class": "Phi3ForCausalLM", "tokenizer": "phi3",
        "config": {
            **sizes(193, 40, 3, 5, 1, 42), "rms_norm_eps": 1e-5, "original_max_position_embeddings": 512,
            "sliding_window": 12, "rope_parameters": rope(10000.0, partial_rotary_factor=0.75), **PIECES,
        },
        "alternative": {"sliding_window": None},
        "notes": ["alt_p*: every layer sees everything. llama.cpp reads the file so; the model has the window."],
    },
    "smollm3": {
        "class": "SmolLM3ForCausalLM", "tokenizer": "gpt2:smollm",
        "config": {
            **sizes(194, 40, 5, 5, 1, 26), "rms_norm_eps": 1e-6, "tie_word_embeddings": True,
            "no_rope_layer_interval": 4, "rope_parameters": rope(2000000.0), **BYTES,
        },
    },
    "ministral3": {
        "class": "Ministral3ForCausalLM", "tokenizer": "gpt2:tekken",
        "config": {
            **sizes(195, 40, 2, 5, 1, 40, head_dim=16, positions=1024), "rms_norm_eps": 1e-5, "sliding_window": None,
            "rope_parameters": rope(
                1000000.0, "yarn", factor=8.0, original_max_position_embeddings=24, beta_fast=32.0, beta_slow=1.0,
                mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.2),
            **BYTES,
        },
    },
    "qwen2_moe": {
        "class": "Qwen2MoeForCausalLM", "tokenizer": "gpt2:qwen2",
        "config": {
            **sizes(197, 40, 2, 5, 1, 40), "moe_intermediate_size": 10, "shared_expert_intermediate_size": 20,
            "num_experts": 5, "num_experts_per_tok": 2, "norm_topk_prob": False, "rms_norm_eps": 1e-6,
            "rope_parameters": rope(1000000.0), **BYTES,
        },
    },
    "gemma3": {
        "class": "Gemma3ForCausalLM", "config_suffix": "TextConfig", "tokenizer": "gemma", "embed": 0.06,
        "config": {
            **sizes(197, 36, 7, 3, 1, 20, head_dim=8), "query_pre_attn_scalar": 8, "sliding_window": 6, "rms_norm_eps": 1e-6,
            "rope_parameters": {
                "full_attention": rope(200000.0, "linear", factor=4.0), "sliding_attention": rope(5000.0),
            },
            **GEMMA,
        },
        "notes": [GELU_TABLE],
    },
    "gemma4": {
        "class": "Gemma4ForCausalLM", "config_suffix": "TextConfig", "tokenizer": "gemma4", "embed": 0.06,
        "config": {
            **sizes(195, 40, 4, 4, 4, 24, head_dim=8), **gemma4_layers("sfsf"), "global_head_dim": 16,
            "num_global_key_value_heads": 2, "attention_k_eq_v": True, "sliding_window": 5,
            "hidden_size_per_layer_input": 0, "vocab_size_per_layer_input": 195, "num_kv_shared_layers": 0,
            "enable_moe_block": False, "final_logit_softcapping": 20.0, "rms_norm_eps": 1e-6, **GEMMA,
        },
        "notes": [GELU_TABLE],
    },
    "gemma4_moe": {
        "class": "Gemma4ForCausalLM", "config_suffix": "TextConfig", "tokenizer": "gemma4", "embed": 0.06,
        "config": {
            **sizes(196, 40, 3, 4, 2, 20, head_dim=8), **gemma4_layers("sff"), "global_head_dim": 16,
            "num_global_key_value_heads": 1, "attention_k_eq_v": True, "sliding_window": 7,
            "hidden_size_per_layer_input": 0, "vocab_size_per_layer_input": 196, "num_kv_shared_layers": 0,
            "enable_moe_block": True, "num_experts": 5, "top_k_experts": 2, "moe_intermediate_size": 8,
            "final_logit_softcapping": 20.0, "rms_norm_eps": 1e-6, **GEMMA,
        },
        "notes": [GELU_TABLE],
    },
    "gemma4_e": {
        "class": "Gemma4ForCausalLM", "config_suffix": "TextConfig", "tokenizer": "gemma4", "embed": 0.06,
        "config": {
            **sizes(194, 32, 6, 4, 2, 18, head_dim=8), **gemma4_layers("sfsfsf"), "global_head_dim": 16,
            "attention_k_eq_v": False, "sliding_window": 5, "hidden_size_per_layer_input": 12,
            "vocab_size_per_layer_input": 194, "num_kv_shared_layers": 2, "use_double_wide_mlp": True,
            "enable_moe_block": False, "final_logit_softcapping": 20.0, "rms_norm_eps": 1e-6, **GEMMA,
        },
        "notes": [GELU_TABLE],
    },
    "qwen3_vl": {
        "class": "Qwen3VLForConditionalGeneration", "tokenizer": "gpt2:qwen2",
        "config": {
            "text_config": {
                **sizes(193, 40, 2, 3, 1, 44, head_dim=24), "rms_norm_eps": 1e-6,
                "rope_parameters": rope(200000.0, mrope_section=[6, 3, 3], mrope_interleaved=True), **BYTES,
            },
            "vision_config": {
                "depth": 2, "hidden_size": 16, "num_heads": 2, "intermediate_size": 16, "patch_size": 4,
                "spatial_merge_size": 2, "temporal_patch_size": 2, "out_hidden_size": 40, "num_position_embeddings": 16,
                "deepstack_visual_indexes": [0], "hidden_act": "gelu_pytorch_tanh", "in_channels": 3,
            },
            "image_token_id": 4, "video_token_id": 5, "vision_start_token_id": 6, "vision_end_token_id": 7,
        },
        "notes": ["text trunk only. llama.cpp gives the rotary pairs after the section pattern position 0, the model the "
                  "temporal one"],
    },
    "qwen3_5": {
        "class": "Qwen3_5ForCausalLM", "config_suffix": "TextConfig", "tokenizer": "gpt2:qwen35", "mtp": "mtp",
        "config": {
            **sizes(195, 32, 3, 3, 1, 28, head_dim=16), **linear_layers("lfl", keys=2, values=6, dim=16),
            "tie_word_embeddings": True, "rms_norm_eps": 1e-6,
            "rope_parameters": rope(
                50000.0, partial_rotary_factor=0.5, mrope_section=[2, 1, 1], mrope_interleaved=True),
            **BYTES,
        },
    },
    "qwen3_5_moe": {
        "class": "Qwen3_5MoeForCausalLM", "config_suffix": "TextConfig", "tokenizer": "gpt2:qwen35",
        "config": {
            **sizes(194, 28, 2, 3, 1, 32, head_dim=16), **linear_layers("lf", keys=2, values=6, dim=32),
            "moe_intermediate_size": 8, "shared_expert_intermediate_size": 12, "num_experts": 5, "num_experts_per_tok": 2,
            "rms_norm_eps": 1e-6,
            "rope_parameters": rope(
                50000.0, partial_rotary_factor=0.5, mrope_section=[2, 1, 1], mrope_interleaved=True),
            **BYTES,
        },
    },
    "qwen3_next": {
        "class": "Qwen3NextForCausalLM", "tokenizer": "gpt2:qwen2",
        "config": {
            **sizes(197, 24, 3, 3, 1, 32, head_dim=16), **linear_layers("llf", keys=2, values=8, dim=16),
            "moe_intermediate_size": 6, "shared_expert_intermediate_size": 10, "num_experts": 5, "num_experts_per_tok": 2,
            "norm_topk_prob": True, "rms_norm_eps": 1e-6, "rope_parameters": rope(50000.0, partial_rotary_factor=0.25),
            **BYTES,
        },
    },
}
