//! Tokenizer, chat templates and the split of a token stream into text.
