"""The training loop, and what depends on the machine."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from skellipsoid import EllipsoidOpenSetClassifier
from skellipsoid._base import explain_out_of_memory, resolve_device, resolve_seed
from skellipsoid._torch.threads import map_parts, one_thread_each
from skellipsoid._torch.training_loop import run_epochs, shuffled_batches
from skellipsoid.datasets import make_open_blobs
from skellipsoid_runtime._containers import to_numpy


def run(losses, scores=None, **more):
    """Run epochs that give these losses and scores."""
    losses, scores = iter(losses), None if scores is None else iter(scores)
    return run_epochs(
        lambda: next(losses),
        max_iter=100,
        n_iter_no_change=2,
        tol=0.0,
        score=None if scores is None else lambda: next(scores),
        keep_best=None,
        label="some model",
        verbose=0,
        **more,
    )


def test_stops_when_the_loss_does_not_improve():
    history = run([5, 4, 3, 3, 3.5, 1])
    assert (history.losses, history.scores) == ([5, 4, 3, 3, 3.5], [])
    assert (history.n_iter, history.stopped_early) == (5, True)


def test_a_flat_score_ends_no_training_whose_loss_falls():
    losses, flat = [9, 8, 7, 6, 5, 5, 5, 5], [0.1] * 8
    assert run(losses, flat).n_iter == 3
    assert run(losses, flat, waits_while_flat=True).n_iter == 7
    assert run(losses, [0.1, 0.2, *[0.1] * 6], waits_while_flat=True).n_iter == 4
    assert run(losses, [1.0] * 8, waits_while_flat=True).n_iter == 3


@pytest.mark.parametrize(("n_rows", "batch_size"), [(1, 1), (10, 3), (10, 10), (10, 99), (97, 16), (128, 128)])
def test_batches_cover_every_row_once(n_rows, batch_size):
    rng = np.random.default_rng(0)
    batches, anew = (list(shuffled_batches(n_rows, batch_size, rng)) for _ in range(2))
    if n_rows > 50:
        assert (np.concatenate(batches) != np.concatenate(anew)).any()
        assert (np.concatenate(batches) != np.arange(n_rows)).any()
    assert sorted(np.concatenate(batches)) == list(range(n_rows))
    sizes = [len(batch) for batch in batches]
    assert len(sizes) == -(-n_rows // batch_size)
    assert max(sizes) <= batch_size
    assert max(sizes) - min(sizes) <= 1


def test_seeds():
    assert resolve_seed(7) == resolve_seed(np.int64(7)) == 7
    assert isinstance(resolve_seed(np.int64(7)), int)
    state = np.random.RandomState(3)
    expected = np.random.RandomState(3).randint(2**31 - 1, size=2).tolist()
    assert [resolve_seed(state), resolve_seed(state)] == expected  # the caller's generator moves on
    np.random.seed(3)  # noqa: NPY002
    assert [resolve_seed(None), resolve_seed(None)] == expected  # as scikit-learn: np.random.seed repeats a fit


def test_out_of_memory_names_sizes_and_remedies():
    with (
        pytest.raises(MemoryError, match=r"^Not enough memory for two large things; take fewer\.$") as caught,
        explain_out_of_memory("two large things", "take fewer"),
    ):
        torch.empty(2**47)  # more than a process can address
    assert isinstance(caught.value.__cause__, RuntimeError)
    with pytest.raises(MemoryError, match="take fewer"), explain_out_of_memory("two large things", "take fewer"):
        np.empty(2**47)


def test_tensors_become_arrays():
    values = torch.tensor([1.5, -2.0], requires_grad=True)
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        np.testing.assert_array_equal(to_numpy(values.to(dtype)), np.float32([1.5, -2]), strict=True)
    np.testing.assert_array_equal(to_numpy(torch.tensor([1 + 2j]).conj()), [1 - 2j])
    frame = [1, 2]
    assert to_numpy(frame) is frame


# Operators use one thread each, and no setting of the process changes


@pytest.fixture
def two_threads(this_machine):
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(1)


def test_the_number_of_threads_does_not_change_a_fit(two_threads, monkeypatch):
    X, y = make_open_blobs(1500, n_known=4, n_features=12, open_share=0.0, random_state=0)
    by_two = EllipsoidOpenSetClassifier(random_state=0).fit(X, y)
    asked = np.tile(X, (40, 1))
    answers = by_two.score_samples(asked)
    torch.set_num_threads(1)
    by_one = EllipsoidOpenSetClassifier(random_state=0).fit(X, y)
    np.testing.assert_allclose(by_two.radii_, by_one.radii_, rtol=1e-9)
    np.testing.assert_allclose(by_two.held_out_scores_, by_one.held_out_scores_, atol=1e-6)
    np.testing.assert_allclose(answers, by_one.score_samples(asked), atol=1e-6)


def test_fits_at_the_same_time_leave_each_thread_its_setting(two_threads):
    X, y = make_open_blobs(120, n_known=3, open_share=0.0, random_state=0)
    meeting, found = threading.Barrier(3, timeout=60), []

    def work(n_threads):
        torch.get_num_threads()  # or the first operator sets the number that the last thread asked for
        torch.set_num_threads(n_threads)
        for _ in range(2):
            meeting.wait()
            EllipsoidOpenSetClassifier(random_state=0).fit(X, y).predict(X)
        found.append((n_threads, torch.get_num_threads()))

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, (1, 2, 3)))
    assert sorted(found) == [(1, 1), (2, 2), (3, 3)]
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("device", ["gpu", "cuda:99", torch.device("cuda:99")], ids=str)
def test_a_missing_device_is_the_cpu_only_on_request(device):
    said = r"^device=.* is not available on this machine; use 'auto', 'cpu' or"
    with pytest.raises(ValueError, match=said):
        resolve_device(device)
    if device == "gpu":  # which no machine has
        with pytest.raises(ValueError, match=said):
            resolve_device(device, fallback=True)
    else:
        assert resolve_device(device, fallback=True) == torch.device("cpu")


def test_an_error_of_a_part_is_the_error_of_all(two_threads):
    with one_thread_each(), pytest.raises(ZeroDivisionError):
        map_parts(lambda part: 1 // part, range(3), 1e9)
