"""A language model behind an HTTP interface, asked for the label itself.

In the order of the data: ``_words`` (labels as a model can say them, the messages, the answer read), ``_examples``
(training texts that a request shows), ``_cache`` (answers kept on disk or in memory), ``_settings`` (where and how to
ask, without secrets), ``_server`` (one request: format of answers, retries, errors), ``_asking`` (all requests of a
call), ``_classifier``.
"""

from .classifier import PromptOpenSetClassifier

__all__ = ["PromptOpenSetClassifier"]
