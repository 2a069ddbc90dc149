"""Samples that are scored by fits without them, or without their class, and what is read off their scores.

In come distances or scores of held-out samples (``table``). Out go the size of boundaries, thresholds, the attribute
``held_out_`` (``kept``), the scores that new ones are compared with (``scores``), the model of a log (``log_model``),
the limit (``line``) and the zones of three answers (``zones``).
"""
