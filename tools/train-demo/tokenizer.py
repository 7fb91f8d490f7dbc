"""A byte-level BPE vocabulary with GPT-2's word boundaries, known to engines as `gpt-2`.

Special tokens come first, then the 256 bytes, then merges; what the text has no merges for is filled with unused names.
"""

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from config import ASSISTANT, END, ENDOFTEXT, SPECIAL, USER

# What the model is trained on; a system message is left out.
CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{%- if message.role == 'user' -%}{{ '<|user|>' + (message.content | trim) + '<|end|>' }}"
    "{%- elif message.role == 'assistant' -%}{{ '<|assistant|>' + (message.content | trim) + '<|end|>' }}"
    "{%- endif -%}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|assistant|>' }}{%- endif -%}"
)
NORMAL, CONTROL, UNUSED = 1, 3, 5


def train(texts, size):
    """A tokenizer of at most `size` tokens, from an iterator over texts."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=size, special_tokens=SPECIAL, show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())))
    assert [tokenizer.token_to_id(text) for text in SPECIAL] == list(range(len(SPECIAL)))
    return tokenizer


def load(path):
    """A trained tokenizer that takes special tokens in text for text, as the engine does with stories."""
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.encode_special_tokens = True
    return tokenizer


def story(ids):
    return [ENDOFTEXT, *ids]


def chat(turns):
    """Tokens of a conversation from (prompt ids, story ids) pairs, as CHAT_TEMPLATE writes it."""
    out = [ENDOFTEXT]
    for prompt, answer in turns:
        out += [USER, *prompt, END, ASSISTANT, *answer, END]
    return out


def for_gguf(path, size):
    """Pieces, their types and the merges."""
    import json

    model = json.loads(open(path, encoding="utf-8").read())["model"]
    pieces = [f"<|unused-{i}|>" for i in range(size)]
    types = [UNUSED] * size
    for piece, i in model["vocab"].items():
        pieces[i], types[i] = piece, CONTROL if piece in SPECIAL else NORMAL
    merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    return pieces, types, merges
