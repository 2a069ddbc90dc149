"""The shipped corpus: its file, and the function that loads it."""

import numpy as np
import pytest

from skellipsoid.datasets import load_assistant_intents


def test_return_X_y_is_data_and_target():
    bunch = load_assistant_intents(subset="dev", open_label="open")
    X, y = load_assistant_intents(subset="dev", open_label="open", return_X_y=True)
    np.testing.assert_array_equal(X, bunch.data)
    np.testing.assert_array_equal(y, bunch.target)


def test_errors_are_sentences():
    with pytest.raises(ValueError, match=r"subset='valid' names no part .* 'train', 'dev', 'test' or 'all'"):
        load_assistant_intents(subset="valid")
    with pytest.raises(ValueError, match="open_label='set_alarm' is one of the 28 known classes"):
        load_assistant_intents(open_label="set_alarm")
