"""Promise: the distance of a sample that is left out with its group is the one that was computed by hand."""

import numpy as np
import pytest
import torch

from skellipsoid._ellipsoid.math import frames
from skellipsoid._ellipsoid.math.covariance import HeldOutSamples
from skellipsoid._ellipsoid.math.left_out_shapes import LeftOutShapes
from skellipsoid._samples.samples import Samples


def test_the_distance_of_a_left_out_sample_is_that_by_hand():
    # Three classes with the means 0, -3 and 3, each of five samples: W = T = 1 and B_0 = 9. The two samples at 1 of the
    # first class are left out.
    means = torch.tensor([[0.0], [-3.0], [3.0]]).double()
    features = (means + torch.tensor([-1.0, -1.0, 0.0, 1.0, 1.0])).reshape(-1, 1)
    groups = np.array([0, 1, 2, 3, 3, *range(4, 14)])
    samples = Samples.of(features, torch.arange(3).repeat_interleave(5), groups=groups)
    frame = frames.principal_frame(samples, degenerate=torch.zeros(3, dtype=bool))
    shapes = LeftOutShapes(frames.rotated(frame, spherical=0.0), between=0.5)
    left_out = HeldOutSamples(0, torch.tensor([4]), torch.tensor([0]))
    # V'V = 10/3, since -1, -1 and 0 have the scatter 2/3 = 4 - 10/3; H = 1 - 10/36 = 13/18 and T' = 12/10 H = 13/15.
    # The class means are -2/3, -3 and 3: B' = 247/27, and Q' = T' + T'^2 / B' = 1352/1425.
    # The centre is -2/3 + T' / B' (-2/3 + 2/9) = -202/285. With S' = 1/3 and rho = 1/2 the variance is 1827/2850.
    by_hand = (1 + 202 / 285) ** 2 / (1827 / 2850)
    assert shapes.distances(left_out, shrinkages=[0.5]).item() ** 2 == pytest.approx(by_hand, abs=1e-9)
