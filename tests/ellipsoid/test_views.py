"""Sets see a frame in few coordinates, which hold all inner products that a score needs."""

import numpy as np
import pytest
import torch

from skellipsoid._ellipsoid.math import left_out_shapes, views
from skellipsoid._ellipsoid.math.frames import principal_frame, rotated
from skellipsoid._ellipsoid.math.geometry import class_spheres
from skellipsoid._ellipsoid.math.left_out_shapes import LeftOutShapes
from skellipsoid._ellipsoid.math.table_maker import TableMaker
from skellipsoid._samples.samples import Samples

SHARES = (0.1, 0.7)
#: Groups of one class, of several, and with two duplicates.
KINDS = ("alone", "pairs", "sevens", "across", "duplicates")


def frame_of(kind, n_features=40, n_classes=5, n_of_class=21):
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(n_classes), n_of_class)
    rows = rng.normal(size=(n_classes, n_features))[classes] + rng.normal(size=(len(classes), n_features))
    own = np.arange(len(rows))
    groups = {"pairs": own // 2, "sevens": own // 7, "across": own % 50}.get(kind, own)
    if kind == "duplicates":
        groups = own - own % 3 // 2
        rows[2::3] = rows[1::3]
    samples = Samples.of(torch.from_numpy(rows), torch.from_numpy(classes), groups=groups)
    return rotated(principal_frame(samples, class_spheres(samples).degenerate), 0.3)


def distances(frame, between):
    maker, shapes = TableMaker(frame, frame.back[:0]), LeftOutShapes(frame, between)
    numbers = torch.arange(len(frame.samples))
    parts = [*maker.held_out_samples(numbers), maker.synthetic(numbers, 0.6, np.random.default_rng(1))]
    found = [shapes.distances(part.of_each_class(), SHARES) for part in parts]
    others = LeftOutShapes(frame, between, without_class=True).distances(parts[1].of_each_class(), SHARES)
    own = parts[0]._replace(assigned=frame.samples.classes)
    return [*found, others, shapes.log_likelihoods(own, SHARES, frame.samples.weights)]


@pytest.mark.parametrize("between", [None, 0.4])
@pytest.mark.parametrize("kind", KINDS)
def test_distances_are_those_of_all_axes(kind, between, monkeypatch):
    frame = frame_of(kind)
    few = distances(frame, between)
    monkeypatch.setattr(views, "MOST_COORDINATES", 0.0)
    for found, expected in zip(few, distances(frame, between), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=0)


@pytest.mark.parametrize("kind", ["alone", "across"])
def test_axes_of_all_classes_serve_a_background_without_one_where_classes_are_large(kind, monkeypatch):
    frame = frame_of(kind, n_classes=20)
    shapes = LeftOutShapes(frame, 0.4)
    held_out = TableMaker(frame, frame.back[:0]).held_out_samples(torch.arange(len(frame.samples)))[1].of_each_class()
    exact = shapes.of_held_out_classes()
    monkeypatch.setattr(left_out_shapes, "LARGE_CLASS", 1)
    taken = shapes.of_held_out_classes()
    assert taken.class_axes is shapes.class_axes is not exact.class_axes
    torch.testing.assert_close(taken.allowances, exact.allowances)
    torch.testing.assert_close(taken.distances(held_out, SHARES), exact.distances(held_out, SHARES), rtol=0.01, atol=0)
