"""Losses of text encoders of the literature, on tensors: no model, no estimator."""

import torch
from torch import Tensor
from torch.nn import functional


def euclidean(rows: Tensor, others: Tensor) -> Tensor:
    """Distances from differences, which are accurate near 0; at 0 their gradient is 0."""
    return torch.cdist(rows, others, compute_mode="donot_use_mm_for_euclid_dist")


def distance_aware_logits(features: Tensor, means: Tensor, weights: Tensor, scale: float) -> Tensor:
    """Logits of DA-ADB: s · ‖x'‖ / (1 + ‖x'‖) · cos(x', w_k) of x' = exp(d₂ − d₁) x.

    d₁ and d₂ are the distances of x to the nearest and the second nearest class mean. So a text that is clearly nearer
    to one class has larger logits. The first factor is σ(d₂ − d₁ + ln ‖x‖), which cannot overflow.

    Parameters
    ----------
    features : Tensor of shape (n_samples, n_features)
    means : Tensor of shape (n_means, n_features)
        With a single mean, d₂ − d₁ is 0.
    weights : Tensor of shape (n_classes, n_features)
    scale : float
        s; the paper calls it α.
    """
    gaps = features.new_zeros(len(features))
    if len(means) > 1:
        nearest = euclidean(features, means).topk(2, dim=1, largest=False).values
        gaps = nearest[:, 1] - nearest[:, 0]
    smallest = torch.finfo(features.dtype).tiny
    lengths = torch.sigmoid(gaps + features.norm(dim=1).clamp_min(smallest).log())
    cosines = functional.normalize(features, dim=1) @ functional.normalize(weights, dim=1).T
    return scale * lengths.unsqueeze(1) * cosines


def knn_contrastive_loss(
    queries: Tensor, classes: Tensor, keys: Tensor, key_classes: Tensor, n_neighbors: int, temperature: float
) -> Tensor:
    """Contrastive loss of KNNCL, the mean over pairs of a query and one of its positives.

    −ln(exp(q · p / τ) / (exp(q · p / τ) + Σ exp(q · n / τ))): the positives p of a query are the nearest keys of its
    class, the negatives n all keys of other classes. Without a positive, or without a negative, a query takes no part;
    the loss of no query is 0.

    Parameters
    ----------
    queries : Tensor of shape (n_queries, n_features)
        Of unit length.
    classes : Tensor of shape (n_queries,)
    keys : Tensor of shape (n_keys, n_features)
        Of unit length.
    key_classes : Tensor of shape (n_keys,)
    n_neighbors : int
        Largest number of positives of a query.
    temperature : float
        τ.
    """
    similarities = queries @ keys.T / temperature  # (n_queries, n_keys)
    same = classes.unsqueeze(1) == key_classes.unsqueeze(0)
    positives = similarities.masked_fill(~same, -torch.inf).topk(min(n_neighbors, len(keys)), dim=1).values
    negatives = similarities.masked_fill(same, -torch.inf).logsumexp(1, keepdim=True)
    pairs = positives.isfinite() & negatives.isfinite()
    # Selected before the subtraction: the gradient of inf − inf is not finite.
    positives, negatives = positives.where(pairs, 0.0), negatives.where(negatives.isfinite(), 0.0)
    losses = functional.softplus(negatives - positives).where(pairs, 0.0)
    return losses.sum() / pairs.sum().clamp_min(1)


def k_center_contrastive_loss(members: Tensor, negatives: Tensor) -> Tensor:
    """K-centre contrastive loss of CLAB, the mean over ordered pairs of members of a group.

    A group is a text and K others of its class. With e(a, b) = exp(a · b), the loss of the pair a, b is
    −ln(e(a, b) / (e(a, b) + Σ_n e(a, n) + Σ_n e(b, n) + R)). The sums run over the negatives of the group, R is the sum
    over all other ordered pairs of its members. So no pair of a group can become much more similar than the others.

    Parameters
    ----------
    members : Tensor of shape (n_groups, K + 1, n_features)
        Of unit length.
    negatives : Tensor of shape (n_groups, M, n_features)
        Of unit length; M may be 0.
    """
    n_members = members.shape[1]
    similarities = members @ members.transpose(1, 2)  # (n_groups, K + 1, K + 1)
    itself = torch.eye(n_members, dtype=torch.bool, device=members.device)
    to_negatives = (members @ negatives.transpose(1, 2)).exp().sum(2)  # (n_groups, K + 1)
    of_pairs = similarities.masked_fill(itself, -torch.inf).exp()
    # All ordered pairs, less the pair in one of its two orders: the other one is the numerator.
    others = of_pairs.sum((1, 2)).view(-1, 1, 1) - of_pairs
    denominators = others + to_negatives.unsqueeze(1) + to_negatives.unsqueeze(2)
    losses = (denominators.log() - similarities).masked_fill(itself, 0.0)
    return losses.sum() / (len(members) * n_members * (n_members - 1))


def granular_ball_loss(
    features: Tensor, classes: Tensor, centers: Tensor, center_classes: Tensor, n_classes: int
) -> Tensor:
    """Granular-ball loss of MOGB, the sum over samples: −ln softmax(−d / Σ_k d_k) of the sample's own class.

    d_k is the distance to the nearest ball of class k. A class without a ball is left out, and its samples take no
    part: with an infinite distance, as in the public code, the loss is not a number.

    Parameters
    ----------
    features : Tensor of shape (n_samples, n_features)
    classes : Tensor of shape (n_samples,)
    centers : Tensor of shape (n_balls, n_features)
    center_classes : Tensor of shape (n_balls,)
    n_classes : int
    """
    distances = euclidean(features, centers)  # (n_samples, n_balls)
    by_class = distances.new_full((len(features), n_classes), torch.inf)
    by_class = by_class.scatter_reduce(1, center_classes.expand(len(features), -1), distances, "amin")
    has_ball = torch.zeros(n_classes, dtype=torch.bool, device=centers.device).index_fill(0, center_classes, True)
    finite = by_class.where(has_ball, 0.0)
    shares = functional.normalize(finite, p=1, dim=1).where(has_ball, torch.inf)
    takes_part = has_ball[classes]
    own = (-shares).log_softmax(1).gather(1, classes.unsqueeze(1)).squeeze(1)
    return -own.where(takes_part, 0.0).sum()


def layer_losses(logits: Tensor, classes: Tensor, redundancy: float) -> Tensor:
    """Loss of DE's classifiers: Σ_l CE(l, y) − β Σ_l min_{j<l} CE(l, p_j).

    CE(l, p_j) is the cross-entropy of layer l with the answer of an earlier layer as the target: the second term keeps
    a layer from repeating the most similar of the layers before it. Each CE is a mean over samples.

    Parameters
    ----------
    logits : Tensor of shape (n_layers, n_samples, n_classes)
    classes : Tensor of shape (n_samples,)
    redundancy : float
        β.
    """
    n_layers = len(logits)
    log_shares = logits.log_softmax(2)
    relevance = torch.stack([functional.nll_loss(log_shares[i], classes) for i in range(n_layers)]).sum()
    shares = logits.softmax(2)
    # (n_layers, n_layers): cross-entropy of the row's layer with the column's answer as target
    crossed = -torch.einsum("lnk,jnk->lj", log_shares, shares) / logits.shape[1]
    repeated = [crossed[i, :i].min() for i in range(1, n_layers)]
    return relevance - redundancy * torch.stack(repeated).sum() if repeated else relevance
