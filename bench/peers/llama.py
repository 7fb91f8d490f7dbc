"""A model and a context of llama.cpp, through the low-level calls of llama-cpp-python.

No sampling and no Python work per token: what is timed is llama_decode alone.
"""

import ctypes

import llama_cpp as lib
import numpy as np

KV_TYPES = {"f16": lib.GGML_TYPE_F16, "f32": lib.GGML_TYPE_F32}

# The library keeps the pointer of the callback, so it has to live as long as the process.
_SILENT = lib.llama_log_callback(lambda level, text, data: None)


class Llama:
    """A loaded model with one sequence."""

    def __init__(self, path, *, n_ctx, n_batch=512, threads=2, flash_attention=True, kv="f16", repack=True):
        lib.llama_log_set(_SILENT, ctypes.c_void_p(0))
        lib.llama_backend_init()
        of_model = lib.llama_model_default_params()
        # Repacked weights are a copy in memory; without, they stay in the mapped file.
        of_model.use_extra_bufts = repack
        self.model = lib.llama_model_load_from_file(str(path).encode(), of_model)
        if not self.model:
            raise SystemExit(f"llama.cpp can't load {path}")
        params = lib.llama_context_default_params()
        params.n_ctx = n_ctx
        params.n_batch = params.n_ubatch = n_batch
        params.n_threads = params.n_threads_batch = threads
        params.flash_attn_type = (
            lib.LLAMA_FLASH_ATTN_TYPE_ENABLED if flash_attention else lib.LLAMA_FLASH_ATTN_TYPE_DISABLED
        )
        params.type_k = params.type_v = KV_TYPES[kv]
        params.no_perf = True
        self.context = lib.llama_init_from_model(self.model, params)
        if not self.context:
            raise SystemExit(f"llama.cpp can't make a context of {n_ctx} tokens for {path}")
        self.vocab = lib.llama_model_get_vocab(self.model)
        self.n_vocab = lib.llama_vocab_n_tokens(self.vocab)
        self.n_batch = n_batch
        self.batch = lib.llama_batch_init(n_batch, 0, 1)

    def tokenize(self, text):
        """Ids of `text` (bytes), with BOS and EOS where the file's rule adds them; special tokens are plain text."""
        size = len(text) + 8
        ids = (lib.llama_token * size)()
        n = lib.llama_tokenize(self.vocab, text, len(text), ids, size, True, False)
        if n < 0:
            raise SystemExit("llama.cpp can't tokenize the text")
        return list(ids[:n])

    def bos(self):
        """The BOS token where the file's rule puts it before a text, else None."""
        return lib.llama_vocab_bos(self.vocab) if lib.llama_vocab_get_add_bos(self.vocab) else None

    def clear(self):
        """Forgets everything that was fed."""
        lib.llama_memory_clear(lib.llama_get_memory(self.context), False)

    def feed(self, ids, position, logits=()):
        """Feeds at most n_batch tokens from `position` on; computes logits for the indices in `logits`."""
        batch = self.batch
        batch.n_tokens = len(ids)
        for i, token in enumerate(ids):
            batch.token[i] = token
            batch.pos[i] = position + i
            batch.n_seq_id[i] = 1
            batch.seq_id[i][0] = 0
            batch.logits[i] = i in logits
        status = lib.llama_decode(self.context, batch)
        if status != 0:
            raise SystemExit(f"llama_decode of {len(ids)} tokens at position {position} gave status {status}")

    def logits(self, index):
        """Logits of token `index` of the last batch, [n_vocab], valid until the next call of feed."""
        return np.ctypeslib.as_array(lib.llama_get_logits_ith(self.context, index), (self.n_vocab,))

    def synchronize(self):
        """Waits until what was fed is computed."""
        lib.llama_synchronize(self.context)
