"""Promise: distances near 0 are accurate, and do not depend on the number of rows."""

from types import SimpleNamespace

import torch

from skellipsoid._encoders.torch.objectives import nearest_mean
from skellipsoid._torch.distances import euclidean


def some_rows():
    """40 rows far from 0: more than the 25 from which torch would compute distances by a matrix product."""
    return 10 + torch.randn(40, 768, generator=torch.Generator().manual_seed(0))


def test_distances_of_rows_to_themselves_are_0_and_have_no_gradient():
    rows = some_rows().requires_grad_()
    found = euclidean(rows, rows.detach())
    assert not found.diagonal().any()
    found.diagonal().sum().backward()
    assert not rows.grad.any()


def test_distances_do_not_depend_on_the_number_of_rows():
    rows, moved = some_rows(), some_rows() + 1e-3
    found = euclidean(rows, moved)
    torch.testing.assert_close(torch.cat([euclidean(part, moved[:20]) for part in rows.split(7)]), found[:, :20])
    expected = (rows.double().unsqueeze(1) - moved.double()).norm(dim=2)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=0)


def test_the_nearest_mean_is_found_among_near_ones():
    near = some_rows()[:1] + 1e-4 * torch.arange(-15, 15).unsqueeze(1)  # 30 means
    learner = SimpleNamespace(class_means=lambda: (near, torch.ones(30)))
    assert nearest_mean(learner, near).tolist() == list(range(30))
