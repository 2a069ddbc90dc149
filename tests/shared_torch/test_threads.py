"""Promise: torch's operators of a fit and an answer use one thread each, and no setting of the process changes."""

import threading

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from skellipsoid import EliDecide, EllipsoidOpenSetClassifier, add_classes, baselines
from skellipsoid._torch.threads import LEAST_OF_THREAD, map_parts, one_thread_each
from skellipsoid.datasets import make_open_blobs


@pytest.fixture
def two_threads():
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(1)


def settings():
    """Threads of OpenMP and of MKL that the operators of this thread use."""
    told = torch.__config__.parallel_info().splitlines()
    return torch.get_num_threads(), [line for line in told if "mkl_get_max_threads" in line]


class ThreadsOfOperators(TorchDispatchMode):
    """Collects the numbers of threads that operators of this thread of Python may use."""

    def __init__(self):
        super().__init__()
        self.found = set()

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        self.found.add(torch.get_num_threads())
        return operator(*args, **(kwargs or {}))


def in_thread(function):
    """Call a function in a thread that begins now."""
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


def test_the_setting_is_that_of_this_thread_and_comes_back(two_threads):
    before = settings()
    with one_thread_each():
        inside = settings()
        with one_thread_each():
            pass
        assert settings() == inside != before
        assert inside[0] == 1
        # Also of a thread that uses torch for the first time meanwhile.
        assert in_thread(settings) == before
    assert settings() == before
    with pytest.raises(KeyboardInterrupt), one_thread_each():
        raise KeyboardInterrupt
    assert settings() == before == in_thread(settings)


@pytest.mark.parametrize("many", [True, False])
def test_parts_are_computed_as_by_a_loop(two_threads, many):
    meeting = threading.Barrier(2, timeout=30)

    def compute(part):
        if many:
            meeting.wait()  # two at once
        return part * 2, threading.get_ident(), torch.get_num_threads(), torch.is_inference_mode_enabled()

    with torch.inference_mode(), one_thread_each():
        found = map_parts(compute, range(6), 6 * LEAST_OF_THREAD if many else 5 * LEAST_OF_THREAD)
    assert [answer for answer, *_ in found] == [0, 2, 4, 6, 8, 10]
    assert {each[2:] for each in found} == {(1, True)}
    assert len({ident for _, ident, *_ in found}) == (2 if many else 1)


def test_an_error_of_a_part_is_the_error_of_all(two_threads):
    with one_thread_each(), pytest.raises(ZeroDivisionError):
        map_parts(lambda part: 1 // part, range(3), 1e9)


METHODS = [
    EllipsoidOpenSetClassifier(random_state=0),
    EllipsoidOpenSetClassifier(trainer=EliDecide(max_iter=2), random_state=0),
    baselines.MahalanobisClassifier(),
    baselines.ADBClassifier(max_iter=2, random_state=0),
]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_operators_of_a_fit_and_of_answers_have_one_thread(two_threads, method):
    X, y = make_open_blobs(200, n_known=3, open_share=0.0, random_state=0)
    with ThreadsOfOperators() as seen:
        method.fit(X, y)
        method.predict(X)
        method.decision_function(X)
    assert seen.found <= {1}
    assert torch.get_num_threads() == 2
    with pytest.raises(ValueError, match="hold at least one known"):
        method.fit(X, np.full(len(X), -1))
    assert torch.get_num_threads() == 2


def test_changes_of_classes_have_one_thread(two_threads):
    X, y = make_open_blobs(200, n_known=3, open_share=0.0, random_state=0)
    fitted = EllipsoidOpenSetClassifier(random_state=0).fit(X[y != 2], y[y != 2])
    with ThreadsOfOperators() as seen:
        add_classes(fitted, X[y == 2], y[y == 2])
    assert seen.found == {1}


def test_the_number_of_threads_does_not_change_a_fit(two_threads, monkeypatch):
    X, y = make_open_blobs(1500, n_known=4, n_features=12, open_share=0.0, random_state=0)
    by_two = EllipsoidOpenSetClassifier(random_state=0).fit(X, y)
    answers = by_two.score_samples(np.tile(X, (40, 1)))
    torch.set_num_threads(1)
    by_one = EllipsoidOpenSetClassifier(random_state=0).fit(X, y)
    np.testing.assert_allclose(by_two.radii_, by_one.radii_, rtol=1e-9)
    np.testing.assert_allclose(by_two.held_out_scores_, by_one.held_out_scores_, atol=1e-6)
    np.testing.assert_allclose(answers, by_one.score_samples(np.tile(X, (40, 1))), atol=1e-6)


def test_fits_at_the_same_time_leave_each_thread_its_setting(two_threads):
    X, y = make_open_blobs(120, n_known=3, open_share=0.0, random_state=0)
    meeting, found = threading.Barrier(3, timeout=60), []

    def work(n_threads):
        torch.get_num_threads()  # or the first operator sets the number that the last thread asked for
        torch.set_num_threads(n_threads)
        for _ in range(3):
            meeting.wait()
            EllipsoidOpenSetClassifier(random_state=0).fit(X, y).predict(X)
        found.append((n_threads, torch.get_num_threads()))

    threads = [threading.Thread(target=work, args=(n_threads,)) for n_threads in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [(1, 1), (2, 2), (3, 3)]
    assert torch.get_num_threads() == 2
