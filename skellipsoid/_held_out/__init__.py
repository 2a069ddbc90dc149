"""Samples that are scored by fits without them, or without their class, and what is read off their scores.

In come distances or scores of held-out samples. Out go the size of boundaries, thresholds (``table``), the attribute
``held_out_`` (``kept``), and the scores that new ones are compared with (``scores``).
"""
