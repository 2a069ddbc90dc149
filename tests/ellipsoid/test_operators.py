"""Promise: what a fit asks torch to do depends on no number of classes or samples, so that a GPU is not waited for."""

import numpy as np
import pytest
import torch
from operator_helpers import Operators

from skellipsoid._ellipsoid.math import closed_form, covariance, left_out, tiles
from skellipsoid._held_out.expected import Expected
from skellipsoid._samples.samples import Samples
from skellipsoid._torch import devices


def counted_fit(n_classes, n_of_class, n_features=16):
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(n_classes), n_of_class)
    rows = rng.normal(size=(n_classes, n_features))[classes] + rng.normal(size=(len(classes), n_features))
    samples = Samples.of(torch.from_numpy(rows), torch.from_numpy(classes))
    with Operators() as found:
        closed_form.finish(closed_form.prepare(samples, samples.features[:0], 0), 0.6, Expected())
    return found.counts


def test_the_operators_of_a_fit_do_not_depend_on_the_number_of_classes_or_samples(monkeypatch):
    for module in (devices, left_out):
        monkeypatch.setattr(module, "chunk_bytes", lambda device: 2**60)
    monkeypatch.setattr(closed_form, "TIE", -1.0)  # tied shares cost a likelihood
    monkeypatch.setattr(tiles, "reads_are_free", lambda device: False)  # as on a GPU
    # The axes of the classes are computed on the host.
    monkeypatch.setattr(
        covariance, "eigh_of_many", lambda matrices, sizes: map(torch.from_numpy, np.linalg.eigh(matrices.numpy()))
    )
    few, many, larger = counted_fit(40, 12), counted_fit(80, 12), counted_fit(40, 15)
    for others in (many, larger):
        assert others.total() == pytest.approx(few.total(), rel=0.001)
    assert many.total() < 12_000
    # What makes the host of a GPU wait.
    assert sum(many[name] for name in ("_local_scalar_dense", "nonzero", "_unique2", "bincount")) < 200
    # The axes of W.
    assert many["_linalg_eigh"] == 1
