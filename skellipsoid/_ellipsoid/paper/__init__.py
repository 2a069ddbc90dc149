"""The paper's training of the boundary matrices.

``fit`` runs it and fills the table of held-out samples; ``training`` has the losses and the steps, against samples that
``pseudo_open`` draws.
"""
