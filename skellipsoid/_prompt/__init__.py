"""A language model behind an HTTP interface, asked for the label itself.

In the order of the data: ``words`` (labels as a model can say them, the messages, the answer read), ``examples``
(training texts that a request shows), ``cache`` (answers kept on disk or in memory), ``settings`` (where and how to
ask, without secrets), ``server`` (one request: format of answers, retries, errors), ``asking`` (all requests of a
call), ``classifier``.
"""
