"""Language models: their hidden states as features, and a model behind an HTTP interface, asked for the label itself.

``_llm_encoder`` is the encoder, ``_causal`` its model. The classifier, in the order of the data: ``_words`` (labels as
a model can say them, the messages, the answer read), ``_examples`` (training texts that a request shows),
``_answer_cache`` (answers kept on disk or in memory), ``_server_settings`` (where and how to ask, without secrets),
``_server`` (one request: format of answers, retries, errors), ``_asking`` (all requests of a call),
``_prompt_classifier``.
"""

from ._llm_encoder import LLMTextEncoder
from ._prompt_classifier import PromptOpenSetClassifier

__all__ = ["LLMTextEncoder", "PromptOpenSetClassifier"]
