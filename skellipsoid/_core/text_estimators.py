"""Tags of estimators whose samples are texts."""

from typing import Any


class TakesTexts:
    """An estimator whose samples are texts."""

    def __sklearn_tags__(self) -> Any:
        """Tags: texts as input."""
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = True
        return tags
