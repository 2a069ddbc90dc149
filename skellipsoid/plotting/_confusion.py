"""Confusion matrices with open as one more class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..metrics._reading import read_label_problem
from ._canvas import FAINT, HATCH, INK, make_axes, shorten, styled
from ._inputs import read_predictions
from ._pictures import require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COARSE_ROWS = ("known", "open")
_COARSE_COLUMNS = ("known,\nright class", "known,\nwrong class", "open")
#: Largest number of classes, open included, whose values fit into their cells.
_MOST_WITH_VALUES = 12
#: Font size and most letters of the names, in the order in which they are tried.
_NAME_STYLES = ((10.0, 34), (8.5, 34), (7.0, 34), (7.0, 22), (6.0, 22))
#: Most letters of names side by side below the matrix.
_MOST_UPRIGHT = 6
#: Height of a line and width of a letter, in font sizes.
_LINE, _LETTER = 1.25, 0.58
#: Of a new figure, in inches: side of a cell, and of the whole matrix.
_SMALLEST_CELL, _LARGEST_CELL = 0.15, 0.7
_SMALLEST_MATRIX, _USUAL_MATRIX, _LARGEST_MATRIX = 2.5, 6.0, 12.0


class OpenSetConfusionMatrixDisplay:
    """Confusion matrix over the known classes and open, or known against open only.

    Use :meth:`from_estimator` or :meth:`from_predictions` to make one.

    Parameters
    ----------
    confusion_matrix : ndarray of int of shape (n_classes + 1, n_classes + 1)
        Number of samples by true class (rows) and predicted class (columns); open is the last.
    display_labels : sequence of length n_classes + 1, default=None
        Names of the classes and of open; ``None`` numbers the classes from 0.

    Attributes
    ----------
    coarse_matrix : ndarray of int of shape (2, 3)
        See Notes.
    ax_ : matplotlib Axes
        Axes with the matrix.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    im_ : matplotlib AxesImage
        The matrix.
    values_ : ndarray
        Values that the colours show: proportions, or numbers with ``normalize=None``; NaN for proportions of zero
        samples.
    text_ : ndarray of matplotlib Text, or None
        Texts in the cells, in the shape of the matrix; ``None`` without texts.

    See Also
    --------
    skellipsoid.metrics.open_set_report : Precision, recall and F1 of each class.
    sklearn.metrics.ConfusionMatrixDisplay : Without open.

    Notes
    -----
    The coarse matrix sums the cells of known and of open samples, as in the figure of [1]_ that compares balls and
    ellipsoids. Rows are true labels, and columns are predictions:

    =====  ==================  ==================  =============
    true   known, right class  known, wrong class  open
    =====  ==================  ==================  =============
    known  correct             wrong class         rejected
    open   (always 0)          accepted            rejected
    =====  ==================  ==================  =============

    References
    ----------
    .. [1] Zou, Y., Zhang, H., Xu, H., Li, S., Xiao, L. "Ellipsoid-Based Decision Boundaries for Open Intent
       Classification." AAAI 2026.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from skellipsoid.plotting import OpenSetConfusionMatrixDisplay
    >>> y_true = ["pay", "pay", "card", "weather", "joke"]
    >>> y_pred = ["pay", "-1", "card", "card", "-1"]
    >>> display = OpenSetConfusionMatrixDisplay.from_predictions(y_true, y_pred, labels=["card", "pay"])
    >>> display.confusion_matrix
    array([[1, 0, 0],
           [0, 1, 1],
           [1, 0, 1]])
    >>> display.coarse_matrix
    array([[2, 0, 1],
           [0, 1, 1]])
    >>> plt.close(display.figure_)
    """

    def __init__(self, confusion_matrix: NDArray[np.int64], *, display_labels: Any = None) -> None:
        self.confusion_matrix = confusion_matrix
        self.display_labels = display_labels

    @property
    def coarse_matrix(self) -> NDArray[np.int64]:
        """Known against open, of shape (2, 3)."""
        known, opened = np.asarray(self.confusion_matrix)[:-1], np.asarray(self.confusion_matrix)[-1]
        right = np.trace(known)
        return np.array([[right, known[:, :-1].sum() - right, known[:, -1].sum()], [0, opened[:-1].sum(), opened[-1]]])

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: ArrayLike, *, ax: Axes | None = None, **options: Any) -> Self:
        """Draw the matrix of a fitted classifier's ``predict``.

        Parameters
        ----------
        estimator : open-set classifier, or Pipeline or search that ends in one
            Fitted.
        X : array-like of shape (n_samples, n_features), or n_samples texts
            Features, or texts for a text Pipeline.
        y : array-like of shape (n_samples,)
            True labels; those outside ``classes_`` are open.
        ax : matplotlib Axes, default=None
            Where to draw; ``None`` makes a new figure.
        **options : dict
            ``display_labels`` of :meth:`from_predictions`, and options of :meth:`plot`.

        Returns
        -------
        display : OpenSetConfusionMatrixDisplay

        Raises
        ------
        ValueError
            If labels mix numbers and strings or lengths differ.
        TypeError
            If the estimator does not end in an open-set classifier.
        ImportError
            If matplotlib is not installed.
        """
        return cls.from_predictions(y, **read_predictions(cls, estimator, X, "predict"), ax=ax, **options)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        open_label: Any = -1,
        labels: ArrayLike | None = None,
        display_labels: Any = None,
        ax: Axes | None = None,
        **plot_options: Any,
    ) -> Self:
        """Draw the matrix of any model's predictions.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            True labels, all numbers or all strings. A label outside ``labels`` is read as open.
        y_pred : array-like of shape (n_samples,)
            Predictions of the same kind: known classes or the open label.
        open_label : int or str, default=-1
            The label for open, cast to the kind of the labels.
        labels : array-like of shape (n_classes,), default=None
            The known classes, in the order of the matrix. None takes all that occur and are not the open label, sorted.
        display_labels : sequence of length n_classes + 1, default=None
            Other names for the classes and, last, for open.
        ax : matplotlib Axes, default=None
            Where to draw; ``None`` makes a new figure.
        **plot_options : dict
            Further options of :meth:`plot`.

        Returns
        -------
        display : OpenSetConfusionMatrixDisplay

        Raises
        ------
        ValueError
            If a prediction is neither among ``labels`` nor open, if ``display_labels`` are not one for each class and
            one for open, if labels mix numbers and strings, or if lengths differ.
        ImportError
            If matplotlib is not installed.
        """
        require_matplotlib(f"{cls.__name__}.from_predictions")
        problem = read_label_problem(y_true, y_pred, open_label=open_label, labels=labels)
        n_labels = len(problem.classes) + 1
        odd = np.flatnonzero(problem.predicted == n_labels)
        if len(odd):
            raise ValueError(
                f"y_pred holds {np.asarray(y_pred)[odd[0]]!s} in row {odd[0]}, which is neither among labels nor the "
                f"open label {problem.open_label!r}: add it to labels."
            )
        cells = n_labels * problem.true + problem.predicted
        matrix = np.bincount(cells, minlength=n_labels**2).reshape(n_labels, n_labels)
        if display_labels is None:
            classes = problem.classes.tolist()
            is_taken = "open" in map(str, classes)
            display_labels = [*classes, f"open ({problem.open_label})" if is_taken else "open"]
        return cls(matrix, display_labels=display_labels).plot(ax=ax, **plot_options)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        coarse: bool = False,
        normalize: Literal["true", "pred", "all"] | None = "true",
        include_values: bool | Literal["auto"] = "auto",
        cmap: Any = "Blues",
        gamma: float | Literal["auto"] = "auto",
        colorbar: bool = True,
        im_kw: dict[str, Any] | None = None,
        text_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the matrix.

        A new figure is large enough for all names, up to about 80 classes. If the given axes are too small, only every
        second or third name is written, and always that of open. Names are cut off after 34 letters, or 22 on small
        axes.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; ``None`` makes a new figure.
        coarse : bool, default=False
            Whether to draw ``coarse_matrix``, with numbers and proportions in its cells.
        normalize : {"true", "pred", "all"} or None, default="true"
            The colours show proportions of the samples of a true class (``"true"``), of a predicted class (``"pred"``)
            or of all samples (``"all"``). ``None`` shows numbers of samples; then open samples, which are often very
            many, hide all other cells.
        include_values : bool or "auto", default="auto"
            Whether to write the values into the cells. "auto" does for up to eleven known classes.
        cmap : str or matplotlib Colormap, default="Blues"
            Colours.
        gamma : float or "auto", default="auto"
            The colour is that of the value to this power. "auto" is 1 if the values are written, else 0.5, which makes
            rare confusions visible.
        colorbar : bool, default=True
            Whether to draw the bar of colours.
        im_kw : dict, default=None
            Keywords of :meth:`matplotlib.axes.Axes.imshow`.
        text_kw : dict, default=None
            Keywords of :meth:`matplotlib.axes.Axes.text` for the values.

        Returns
        -------
        display : OpenSetConfusionMatrixDisplay
            This display, with the drawn artists.

        Raises
        ------
        ValueError
            If ``normalize`` is none of the four, or the names are not as many as the matrix has rows.
        """
        counts = self.coarse_matrix if coarse else np.asarray(self.confusion_matrix)
        self.values_ = _normalize(counts, normalize)
        names = self._names()
        self.ax_, self.figure_ = make_axes(self, ax, figsize=(6.4, 4) if coarse else _figure_size(names))
        writes = coarse or include_values is True or (include_values == "auto" and len(counts) <= _MOST_WITH_VALUES)
        power = (1.0 if writes else 0.5) if gamma == "auto" else gamma
        self._draw_image(coarse, normalize, cmap, power, im_kw)
        if colorbar:
            whole = {"true": "the true class", "pred": "the prediction", "all": "all samples"}
            bar = self.figure_.colorbar(self.im_, ax=self.ax_, shrink=0.6, aspect=30, pad=0.02)
            bar.set_label("samples" if normalize is None else f"proportion of {whole[normalize]}")
        self.text_ = None
        if coarse:
            self.text_ = self._write(_write_coarse(counts, self.values_, normalize), text_kw)
            self.ax_.set(xticks=range(3), yticks=range(2), xticklabels=_COARSE_COLUMNS, yticklabels=_COARSE_ROWS)
        else:
            if writes:
                digits = "d" if normalize is None else ".2f"
                texts = [[_write_value(value, digits) for value in row] for row in self.values_]
                self.text_ = self._write(np.array(texts, dtype=object), text_kw)
            self._write_names(names)
        self.ax_.set(xlabel="prediction", ylabel="true class" if not coarse else "true")
        return self

    def _names(self) -> list[Any]:
        n_labels = len(self.confusion_matrix)
        if self.display_labels is None:
            return [*range(n_labels - 1), "open"]
        if len(self.display_labels) != n_labels:
            raise ValueError(
                f"display_labels has {len(self.display_labels)} names for a matrix of {n_labels}: pass one for each "
                "known class and, last, one for open."
            )
        return list(self.display_labels)

    def _draw_image(
        self,
        coarse: bool,
        normalize: str | None,
        cmap: Any,
        gamma: float,
        im_kw: dict[str, Any] | None,
    ) -> None:
        from matplotlib.colors import PowerNorm
        from matplotlib.image import AxesImage

        shown = self.values_.astype(np.float64)
        if coarse:
            shown[1, 0] = np.nan  # no known class is right for an open sample
        top = 1.0 if normalize else max(float(np.nanmax(shown)), 1.0)
        looks = {"cmap": cmap, "norm": PowerNorm(gamma, 0, top), "interpolation": "nearest", "aspect": "equal"}
        self.im_ = self.ax_.imshow(np.ma.masked_invalid(shown), **styled(looks, im_kw, AxesImage))
        self.ax_.patch.set(facecolor="white", edgecolor=HATCH, hatch="///")  # visible in cells without a value
        # Open is set apart from the known classes.
        self.ax_.axhline(shown.shape[0] - 1.5, color=INK, linewidth=0.8)
        self.ax_.axvline(shown.shape[1] - 1.5, color=INK, linewidth=0.8)

    def _write(self, texts: NDArray[np.object_], text_kw: dict[str, Any] | None) -> NDArray[np.object_]:
        from matplotlib.text import Text

        written = np.empty(texts.shape, dtype=object)
        for (i, j), text in np.ndenumerate(texts):
            colour = self._text_colour(self.values_[i, j]) if text != "–" else FAINT
            looks = {"color": colour, "horizontalalignment": "center", "verticalalignment": "center", "fontsize": 10}
            written[i, j] = self.ax_.text(j, i, text, **styled(looks, text_kw, Text))
        return written

    def _text_colour(self, value: Any) -> str:
        """Dark on light cells, white on dark ones."""
        if value != value:
            return INK
        red, green, blue, _ = self.im_.to_rgba(np.array([[float(value)]]))[0, 0]
        return "white" if 0.299 * red + 0.587 * green + 0.114 * blue < 0.5 else INK

    def _write_names(self, names: list[Any]) -> None:
        """Name rows and columns in the largest font and with the longest names that fit."""
        n_labels = len(names)
        for size, most_letters in _NAME_STYLES:
            shown = [shorten(name, most_letters) for name in names]
            self._set_ticks(shown, size, 1)
            # The size of the axes depends on the space for the names.
            self.figure_.figure.draw_without_rendering()
            box = self.ax_.get_window_extent()
            pitch = min(box.width, box.height) / n_labels * 72 / self.ax_.figure.dpi  # in points, as fonts
            if pitch >= _LINE * size:
                break
        else:
            self._set_ticks(shown, size, int(np.ceil(_LINE * size / pitch)))

    def _set_ticks(self, names: list[str], size: float, step: int) -> None:
        last = len(names) - 1
        # Open, the last, is always named; names too close to it are left out.
        ticks = [*(k for k in range(0, last, step) if last - k >= step), last]
        shown = [names[k] for k in ticks]
        fits = max(map(len, shown)) <= _MOST_UPRIGHT and last < _MOST_WITH_VALUES
        self.ax_.set_xticks(ticks, shown, fontsize=size, rotation=0 if fits else 90)
        self.ax_.set_yticks(ticks, shown, fontsize=size)


def _normalize(counts: NDArray[np.int64], normalize: str | None) -> NDArray[Any]:
    """Turn numbers of samples into proportions, NaN where there are none."""
    if normalize is None:
        return counts
    axes: dict[str, int | None] = {"true": 1, "pred": 0, "all": None}
    if normalize not in axes:
        raise ValueError(f"normalize={normalize!r} is not allowed: pass 'true', 'pred', 'all' or None.")
    whole = counts.sum(axis=axes[normalize], keepdims=True)
    return np.asarray(np.divide(counts, whole, out=np.full(counts.shape, np.nan), where=whole > 0))


def _figure_size(names: list[Any]) -> tuple[float, float]:
    """Size of a figure in which every name fits, in inches."""
    cell = float(np.clip(_USUAL_MATRIX / len(names), _SMALLEST_CELL, _LARGEST_CELL))
    side = float(np.clip(cell * len(names), _SMALLEST_MATRIX, _LARGEST_MATRIX))
    letters = max(len(shorten(name, _NAME_STYLES[0][1])) for name in names)
    margin = 0.6 + letters * _LETTER * min(72 * cell / _LINE, _NAME_STYLES[0][0]) / 72
    return side + margin + 1.2, side + margin


def _write_value(value: Any, digits: str) -> str:
    if value != value:
        return "–"
    return "0" if value == 0 else format(value, digits)


def _write_coarse(counts: NDArray[np.int64], values: NDArray[Any], normalize: str | None) -> NDArray[np.object_]:
    texts = np.empty(counts.shape, dtype=object)
    for (i, j), count in np.ndenumerate(counts):
        share = "" if normalize is None or values[i, j] != values[i, j] else f"\n{values[i, j]:.1%}"
        texts[i, j] = f"{count}{share}"
    texts[1, 0] = "–"
    return texts
