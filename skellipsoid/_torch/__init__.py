"""What all computations in torch use.

``devices`` (devices, seeds, memory), ``training`` (the training loop), ``progress`` (its bar), ``losses``,
``distances``, ``shards`` (the same sums on any number of threads) and ``imports`` (of modules that take long).
"""
