"""What works on a fitted classifier, or on a Pipeline that ends in one.

``explain`` (why an answer), ``operating_point`` (move the limit), ``traffic`` (how much of a log is open), ``learning``
(from labelled messages of a log), ``monitor`` (has it risen), ``discovery`` (groups of what is new), ``changes``
(classes come and go) and ``compare`` (which answers change).
"""
