"""Classes come and go after a fit, and messages are learned: each change is a fit to the samples that were kept.

``classes`` has the public functions, also of Pipelines. ``refit`` changes samples and fits again. ``learned`` are the
labelled messages, ``remember`` chooses those that the memory holds, and ``rejecting`` says when the shrinkage and the
radius scale of before do not suit the classes of now.
"""
