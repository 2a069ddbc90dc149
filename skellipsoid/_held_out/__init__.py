"""Samples that are scored by fits without them, or without their class: one table, which a fit fills, keeps and gives.

``table`` holds it, with its expected F1. ``kept`` is the attribute ``held_out_``, ``state`` the saved columns, and
``expected`` what a classifier expects of its traffic.
"""
