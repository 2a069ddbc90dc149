"""What all splitters share: seeds and errors."""

import numpy as np
import pytest

from skellipsoid.model_selection import KnownClassSplit, OpenSetKFold, OpenSetShuffleSplit, RealOpenKFold

ALL = [OpenSetKFold(3), OpenSetShuffleSplit(3), KnownClassSplit(0.5, 0), RealOpenKFold(3)]


def equal_splits(first, second):
    return len(first) == len(second) and all(
        np.array_equal(a, b) for one, two in zip(first, second, strict=True) for a, b in zip(one, two, strict=True)
    )


class TestInterface:
    y = np.repeat(["-1", "a", "b", "c", "d"], 6)

    @pytest.mark.parametrize("kind", [OpenSetKFold, RealOpenKFold, OpenSetShuffleSplit])
    def test_random_state(self, kind):
        def split(random_state):
            options = {} if kind is OpenSetShuffleSplit else {"shuffle": True}
            return list(kind(3, random_state=random_state, **options).split(self.y, self.y))

        assert equal_splits(split(7), split(7))
        assert equal_splits(split(7), split(np.random.RandomState(7)))
        assert not equal_splits(split(7), split(8))
        assert not equal_splits(split(None), split(None))

    @pytest.mark.parametrize("splitter", ALL, ids=lambda splitter: type(splitter).__name__)
    @pytest.mark.parametrize(
        ("y", "message"),
        [
            ([0, 1], "X has 3 rows and y has 2"),
            ([7, 7, 7], "holds 1 known|1 classes keeps|No sample carries the open label|0 known"),
        ],
    )
    def test_bad_labels(self, splitter, y, message):
        with pytest.raises(ValueError, match=message) as error:
            list(splitter.split(["x", "y", "z"], y))
        assert "\n" not in str(error.value)

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: OpenSetKFold(1), "n_splits=1 must be an integer of at least 2"),
            (lambda: OpenSetKFold(True), "n_splits=True must be an integer"),
            (lambda: OpenSetKFold(3, shuffle=1), "shuffle=1 must be True or False"),
            (lambda: RealOpenKFold(3, random_state=0), "random_state=0 has no effect while shuffle=False"),
            (lambda: OpenSetShuffleSplit(0), "n_splits=0 must be an integer of at least 1"),
            (lambda: OpenSetShuffleSplit(known_ratio=0), "known_ratio=0 must be a number above 0"),
            (lambda: OpenSetShuffleSplit(test_size=1.0), "test_size=1.0 must be a proportion between 0 and 1"),
            (lambda: KnownClassSplit("a quarter", 0), "known_ratio='a quarter' must be a number"),
        ],
    )
    def test_bad_parameters(self, make, message):
        with pytest.raises((ValueError, TypeError), match=message):
            make()
