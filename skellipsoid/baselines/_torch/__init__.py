"""Computations of the methods from the literature, in torch.

``literature`` and ``literature_losses`` (how their text encoders are trained), ``dynamic_ensemble``, ``granular_balls``
and ``radii`` (trained radii of balls).
"""
