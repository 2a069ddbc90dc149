"""Devices, threads, random numbers, losses and the training loop of all computations in torch.

``machine`` (what depends on the machine), ``devices`` (devices, seeds, memory), ``training_loop``,
``progress`` (its bar), ``losses``, ``distances``, ``shards`` (one training by several processes) and ``imports`` (of
modules that take long).
"""
