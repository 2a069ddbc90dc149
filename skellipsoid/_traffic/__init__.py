"""What a fitted classifier says of new samples, or a Pipeline that ends in one, and what it learns from them.

In come a fitted model and a log, with or without labels. Out go the proportion of open samples (``share``; the
model behind it is ``_traffic_model``) and probabilities (``proba``), what is expected of messages to come
(``forecast``), a new threshold (``operating_point``), a model that has learned (``learning``), an alarm (``monitor``),
new classes (``discovery``), reasons (``explain``) and differences between two models (``compare``).
"""
