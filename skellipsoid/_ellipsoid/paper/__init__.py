"""The paper's training of the boundary matrices A_k by Adam on an expansion and a contraction loss (eq. 13 to 16).

``ellipsoids`` runs the training and scores the validation samples; ``training`` has the losses and steps, and
``pseudo_open`` draws the open samples.
"""
