"""Computations of the published methods, in torch.

``objectives`` and ``losses`` (how their text encoders are trained), ``dynamic_ensemble`` and ``layers`` (DE), and of
boundaries ``granular_balls`` and ``radii``.
"""
