"""Which texts a text model embeds, as the library's own model sees them."""

import transformers


def embedded_texts(monkeypatch):
    """List, from now on, the tokens of each text that a BERT embeds, without their padding."""
    found, forward = [], transformers.BertModel.forward

    def noted(model, input_ids=None, attention_mask=None, **options):
        found.extend(tuple(ids[mask.bool()].tolist()) for ids, mask in zip(input_ids, attention_mask, strict=True))
        return forward(model, input_ids=input_ids, attention_mask=attention_mask, **options)

    monkeypatch.setattr(transformers.BertModel, "forward", noted)
    return found
