"""From texts to features.

In the order of the data: ``backbone`` (load a text model, tokenise, embed), ``token_table`` (tokens on a device),
``tokens`` (count tokens), ``contrastive`` (train a text model or a linear head), ``stored_text_model`` (a text model as
plain data, for ``save``).
"""
