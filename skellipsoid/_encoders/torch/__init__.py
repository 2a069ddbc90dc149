"""Embeddings of texts by a transformer, and its training by the contrastive loss (eq. 1 and 2), without scikit-learn.

In the order of the data: ``model_lookup`` (find an embedding model), ``backbone`` (tokenise, embed),
``tokenizer_rules``, ``token_table`` (tokens on a device), ``tokens`` (count tokens), ``known_tokens`` (which of them
say something), ``positions`` (how many a model reads), ``rows`` (what a step trains on), ``objectives`` (losses) and
``contrastive`` (train an embedding model or a linear head). ``embedding_model`` is an embedding model with its
tokenizer, ``stored_model`` one as plain data, for ``save``, and ``probes`` are the texts that it is tried with.
"""
