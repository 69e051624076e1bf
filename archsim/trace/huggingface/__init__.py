"""Transformers by the `config.json` of a Hugging Face model: the file, the model's numbers, and its graph."""
