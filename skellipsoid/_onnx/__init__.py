"""A fitted classifier or Pipeline as one ONNX graph, for machines without torch.

``export`` makes the graph, ``folder`` writes it. ``heads`` is what follows the features, in operators of torch;
``quantize`` is an embedding model in 8-bit integers.
"""
