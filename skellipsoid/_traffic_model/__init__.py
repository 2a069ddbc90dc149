"""A Bayesian model of the traffic: how many messages are open, and how far out known and open ones lie.

A fit uses it with no message, to place the radius scale by the prior; a log uses it with its scores and labels.
``normal_scores`` puts scores on one scale, ``posterior`` draws the five unknowns (importance sampling), ``threshold``
places the threshold and forecasts what it does, and ``zones`` places what ``predict_set`` asks about.
"""
