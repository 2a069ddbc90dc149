"""The paper's losses, on tensors: expansion and contraction of a boundary, and the contrastive loss of features.

Every boundary loss takes r = ‖A_k (z − c_k)‖₂ and Δ_k, in any shapes that broadcast.
"""

import torch
from torch import Tensor

#: CLAB's η, s and e, the settings of the paper's appendix.
CLAB_WEIGHT, CLAB_SHRINK, CLAB_EXPAND = 0.1, 0.1, 0.5


def expansion_loss(norms: Tensor, radii: Tensor) -> Tensor:
    """L_p = max(r − Δ, 0): how far a known sample lies outside its boundary (eq. 13)."""
    return (norms - radii).clamp_min(0)


def contraction_loss(norms: Tensor, radii: Tensor, beta: float) -> Tensor:
    """L_n of a pseudo-open sample (eq. 15).

    (Δ − r) + β inside the boundary, β exp(Δ − r) on it and outside.
    """
    depth = radii - norms
    return torch.where(depth > 0, depth + beta, beta * torch.exp(depth.clamp_max(0)))


def inside_loss(norms: Tensor, radii: Tensor) -> Tensor:
    """L_ADB = max(Δ − r, 0): how far a sample lies inside the boundary (paper's appendix).

    The contraction loss with β = 0, which is L_ADB-Gen on pseudo-open samples.
    """
    return (radii - norms).clamp_min(0)


def other_class_loss(
    norms: Tensor, radii: Tensor, eta: float = CLAB_WEIGHT, shrink: float = CLAB_SHRINK, expand: float = CLAB_EXPAND
) -> Tensor:
    """η max(Δ + s − r, 0) + η max(r − Δ − e, 0): the term of L_CLAB of a sample of another class (paper's appendix)."""
    shrinking, expanding = (radii + shrink - norms).clamp_min(0), (norms - radii - expand).clamp_min(0)
    return eta * (shrinking + expanding)


def supervised_contrastive_loss(features: Tensor, classes: Tensor, temperature: float) -> Tensor:
    """Supervised contrastive loss of unit-length features (eq. 2), the mean over anchors.

    An anchor without another sample of its class in the batch is left out; a batch of such anchors has the loss 0. The
    paper writes the sum over anchors; the mean makes the learning rate independent of the batch's size.

    Parameters
    ----------
    features : Tensor of shape (n_samples, n_features)
    classes : Tensor of shape (n_samples,)
    temperature : float
        τ of eq. 2.
    """
    similarities = features @ features.T / temperature
    itself = torch.eye(len(features), dtype=torch.bool, device=features.device)
    log_probabilities = similarities - similarities.masked_fill(itself, -torch.inf).logsumexp(1, keepdim=True)
    positives = (classes.unsqueeze(0) == classes.unsqueeze(1)) & ~itself
    n_positives = positives.sum(1)
    # Selected, not multiplied by 0: the probabilities of a sample that is alone in its batch are not finite.
    per_anchor = -log_probabilities.where(positives, 0.0).sum(1) / n_positives.clamp_min(1)
    return per_anchor.sum() / (n_positives > 0).sum().clamp_min(1)
