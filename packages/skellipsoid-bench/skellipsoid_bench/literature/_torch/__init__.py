"""Computations of the published methods, in torch.

``objectives`` and ``losses`` (how their text encoders are trained), ``dynamic_ensemble`` and ``granular_balls``.
"""
