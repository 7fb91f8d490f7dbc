"""Tiny models of `transformers` whose weights leave nothing at a value that hides a mistake.

Parameters that a new model starts at 0 or 1 (norms, biases, sinks, scalars, correction biases) are random here, and so
are the buffers that a checkpoint stores. Matrices keep the size of what flows through them, embeddings are small beside
what the layers add, and the last step is scaled until logits have a standard deviation of 2.

Values depend only on the seed and the parameter's name, never on the initialiser of the installed version.
"""

import copy
import zlib

import torch
import transformers

LOGIT_STD = 2.0
# Small beside the layers' outputs: a layer that is wrong then moves the logits.
EMBED_STD = 0.4
GAIN = 1.3
# Experts stored [expert, in, out] instead of [expert, out, in].
INPUT_FIRST = ("gpt_oss",)


def build(family):
    """The model of `family`, in float32 with eager attention, on the CPU."""
    config_class = getattr(transformers, family["class"].rpartition("For")[0] + family.get("config_suffix", "Config"))
    config = config_class(**copy.deepcopy(family["config"]))
    config._attn_implementation = "eager"
    config._experts_implementation = "eager"
    for part in (getattr(config, "text_config", None),):
        if part is not None:
            part._attn_implementation = "eager"
            part._experts_implementation = "eager"
    config.dtype = torch.float32
    model = getattr(transformers, family["class"])(config)
    return model.float().eval()


def stored(model):
    """Name and tensor of everything that a checkpoint holds, tied tensors once."""
    seen = set()
    for name, tensor in sorted({**dict(model.named_parameters()), **persistent_buffers(model)}.items()):
        if tensor.data_ptr() not in seen:
            seen.add(tensor.data_ptr())
            yield name, tensor


def persistent_buffers(model):
    keys = set(model.state_dict())
    return {name: buffer for name, buffer in model.named_buffers() if name in keys}


def centres(model):
    """What the vectors of a new model start at, by name; to be asked before it is filled."""
    return {name: 1.0 for name, tensor in stored(model) if tensor.dim() < 2 and torch.all(tensor == 1.0)}


def sample(name, tensor, seed, model_type, embed_std=EMBED_STD, centre=0.0):
    """New values for one tensor; those of a vector lie around `centre`."""
    generator = torch.Generator().manual_seed((seed << 32) ^ zlib.crc32(name.encode()))
    normal = torch.randn(tensor.shape, generator=generator)
    leaf = name.rpartition(".")[2]
    if leaf == "A_log":
        return torch.log(0.2 + 3.0 * torch.rand(tensor.shape, generator=generator))
    if leaf == "sinks":
        return 1.5 + normal
    if leaf == "e_score_correction_bias":
        return 0.4 * normal
    if leaf == "per_expert_scale":
        return 1.0 + 0.4 * torch.rand(tensor.shape, generator=generator)
    if leaf == "layer_scalar":
        return 0.7 + 0.6 * torch.rand(tensor.shape, generator=generator)
    if leaf == "dt_bias":
        return 0.5 * normal
    if tensor.dim() < 2:
        return centre + 0.25 * normal
    if "embed" in name:
        return embed_std * normal
    if "conv1d" in name:
        return 0.6 * normal
    if name.endswith("router.proj.weight"):
        # Gemma 4 divides the router's input by the root of its width.
        return 1.5 * GAIN * normal
    if model_type == "gpt_oss" and name.endswith("gate_up_proj"):
        # Wide enough that gate and up meet their limit of 7.
        return 3.0 * GAIN / tensor.shape[1] ** 0.5 * normal
    fan_in = tensor.shape[-1]
    if tensor.dim() == 3 and model_type in INPUT_FIRST:
        fan_in = tensor.shape[1]
    return GAIN / fan_in**0.5 * normal


@torch.no_grad()
def randomise(model, start, seed, embed_std=EMBED_STD):
    """Fills `model`, whose `centres` were `start`, from `seed`."""
    for name, tensor in stored(model):
        tensor.copy_(sample(name, tensor, seed, model.config.model_type, embed_std, start.get(name, 0.0)))
    scale_logits(model, start, seed)


@torch.no_grad()
def scale_logits(model, start, seed):
    """Scales the head, or where it is tied the last norm, until logits spread as wanted."""
    generator = torch.Generator().manual_seed(seed)
    text = getattr(model.config, "text_config", model.config)
    ids = torch.randint(3, text.vocab_size, (1, 64), generator=generator)
    embedding, head = model.get_input_embeddings().weight, model.get_output_embeddings().weight
    tied = embedding.data_ptr() == head.data_ptr()
    name = last_norm(model)
    norm = dict(model.named_parameters())[name]
    shifted = name not in start
    # A soft cap makes the scale nonlinear, so go in steps.
    for _ in range(6):
        factor = LOGIT_STD / float(model(ids).logits.std())
        if not tied:
            head.mul_(factor)
        elif shifted:
            norm.copy_((norm + 1.0) * factor - 1.0)
        else:
            norm.mul_(factor)


def last_norm(model):
    names = [name for name, _ in model.named_parameters() if name.endswith(".norm.weight") and "layers" not in name]
    names = [name for name in names if "visual" not in name]
    assert len(names) == 1, names
    return names[0]


# How a checkpoint names the block that predicts one token further: its layer, what joins it to the trunk, and the
# configuration's count of such blocks.
PREDICTION = {
    "mtp": {
        "layer": "mtp.layers.0.", "joint": "mtp.fc.weight", "key": "mtp_num_hidden_layers",
        "norms": ["mtp.pre_fc_norm_embedding.weight", "mtp.pre_fc_norm_hidden.weight", "mtp.norm.weight"],
    },
    "layer": {
        "layer": "model.layers.{n}.", "joint": "model.layers.{n}.eh_proj.weight", "key": "num_nextn_predict_layers",
        "norms": [f"model.layers.{{n}}.{norm}.weight" for norm in ("enorm", "hnorm", "shared_head.norm")],
    },
}


def prediction_block(style, saved, config, seed):
    """Tensors of the block that predicts one token further, shaped as the last attention layer of `saved`."""
    names, count, hidden = PREDICTION[style], config["num_hidden_layers"], config["hidden_size"]
    kinds = config.get("layer_types") or ["full_attention"] * count
    head = f"model.layers.{max(at for at, kind in enumerate(kinds) if kind == 'full_attention')}."
    shapes = {names["layer"] + name.removeprefix(head): tensor for name, tensor in saved.items() if name.startswith(head)}
    shapes |= {norm: torch.zeros(hidden) for norm in names["norms"]} | {names["joint"]: torch.zeros(hidden, 2 * hidden)}
    shapes = {name.format(n=count): tensor for name, tensor in shapes.items()}
    return {name: sample(name, tensor, seed, config["model_type"]) for name, tensor in shapes.items()}
