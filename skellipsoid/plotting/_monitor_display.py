"""The evidence of a monitor over time, with the proportion predicted open."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .._traffic.monitor import OpenShareMonitor
from ._canvas import FAINT, INK, KNOWN_COLOUR, OPEN_COLOUR, legend_above, make_axes, styled
from ._pictures import require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(eq=False, repr=False, kw_only=True)
class MonitorDisplay:
    """Evidence of an :class:`~skellipsoid.OpenShareMonitor` that more of the traffic is open, over the samples seen.

    Use :meth:`from_monitor` to make one.

    Parameters
    ----------
    n_seen : ndarray of shape (n_updates,)
        Samples seen after each update.
    log10_evidence : ndarray of shape (n_updates,)
        Logarithm of the evidence after each update.
    open_share : ndarray of shape (n_updates,)
        Proportion that ``predict`` returned as open in each update.
    needed : float
        Logarithm of the evidence that raises an alarm.
    reference_open_share : float
        Proportion that ``predict`` returned as open in the reference.
    alarm_at : int, default=None
        Samples seen at the first alarm; ``None`` if there is none.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the evidence.
    share_ax_ : matplotlib Axes
        The axes' second scale, with the proportions.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    line_ : matplotlib Line2D
        The evidence.
    alarm_line_ : matplotlib Line2D or None
        The first alarm.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from skellipsoid import EllipsoidOpenSetClassifier, OpenShareMonitor
    >>> from skellipsoid.datasets import make_open_blobs
    >>> from skellipsoid.plotting import MonitorDisplay
    >>> X, y = make_open_blobs(600, 8, n_known=6, open_share=0.0, random_state=0)
    >>> clf = EllipsoidOpenSetClassifier(random_state=0).fit(X[:300], y[:300])
    >>> monitor = OpenShareMonitor(clf).fit(X[300:400])
    >>> for start in range(400, 600, 20):
    ...     monitor = monitor.update(X[start : start + 20])
    >>> display = MonitorDisplay.from_monitor(monitor)
    >>> len(display.n_seen), display.alarm_line_ is None
    (10, True)
    >>> plt.close(display.figure_)
    """

    n_seen: NDArray[np.float64]
    log10_evidence: NDArray[np.float64]
    open_share: NDArray[np.float64]
    needed: float
    reference_open_share: float
    alarm_at: int | None = None

    @classmethod
    def from_monitor(cls, monitor: OpenShareMonitor, *, ax: "Axes | None" = None, **plot_options: Any) -> Self:
        """Draw the evidence after each update of a monitor.

        Parameters
        ----------
        monitor : OpenShareMonitor
            Fitted, with one update at least.
        ax : matplotlib Axes, default=None
            Where to draw; ``None`` makes a new figure.
        **plot_options : dict
            Further options of :meth:`plot`.

        Returns
        -------
        display : MonitorDisplay

        Raises
        ------
        NotFittedError
            If the monitor is not fitted.
        ValueError
            If it was never updated.
        ImportError
            If matplotlib is not installed.
        """
        require_matplotlib(f"{cls.__name__}.from_monitor")
        check_is_fitted(monitor)
        if not len(monitor.history_):
            raise ValueError(
                "The monitor was never updated, so there is nothing to draw: call update with new samples first."
            )
        n_seen, n_open, evidence = monitor.history_.T
        return cls(
            n_seen=n_seen,
            log10_evidence=evidence,
            open_share=np.diff(n_open, prepend=0) / np.diff(n_seen, prepend=0),
            needed=-float(np.log10(monitor.false_alarm_rate)),
            reference_open_share=monitor.reference_open_share_,
            alarm_at=monitor.alarm_at_,
        ).plot(ax=ax, **plot_options)

    def plot(self, *, ax: "Axes | None" = None, legend: bool = True, line_kw: dict[str, Any] | None = None) -> Self:
        """Draw the evidence, and on a second scale the proportion predicted open.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; ``None`` makes a new figure.
        legend : bool, default=True
            Whether to draw the legend, above the axes.
        line_kw : dict, default=None
            Keywords of :meth:`matplotlib.axes.Axes.plot` for the evidence.

        Returns
        -------
        display : MonitorDisplay
            This display, with the drawn artists.
        """
        self.ax_, self.figure_ = make_axes(self, ax)
        from matplotlib.lines import Line2D
        from matplotlib.ticker import PercentFormatter

        self.share_ax_ = self.ax_.twinx()
        seen, share = np.append(0, self.n_seen), np.append(self.open_share[0], self.open_share)
        label = "predicted open in each update"
        shares = self.share_ax_.step(seen, share, color=OPEN_COLOUR, alpha=0.6, label=label)
        label = "predicted open in the reference"
        shares += [self.share_ax_.axhline(self.reference_open_share, color=FAINT, linestyle=":", label=label)]
        self.share_ax_.set(
            ylabel="proportion of samples predicted open", ylim=(0, max(0.05, 1.1 * self.open_share.max()))
        )
        self.share_ax_.yaxis.set_major_formatter(PercentFormatter(1))
        looks = {"color": KNOWN_COLOUR, "linewidth": 2.0, "label": "evidence of more open samples"}
        evidence = np.append(-np.log10(2), self.log10_evidence)
        (self.line_,) = self.ax_.plot(seen, evidence, **styled(looks, line_kw, Line2D))
        lines = [self.line_, self.ax_.axhline(self.needed, color=INK, linestyle="--", label="enough for an alarm")]
        self.alarm_line_ = None
        if self.alarm_at is not None:
            label = f"first alarm, after {self.alarm_at:,} samples"
            self.alarm_line_ = self.ax_.axvline(self.alarm_at, color=INK, linewidth=1.2, label=label)
            lines.append(self.alarm_line_)
        self.ax_.set(xlabel="samples seen", ylabel="log10 of the evidence", xlim=(0, self.n_seen[-1]))
        self.ax_.set_zorder(self.share_ax_.get_zorder() + 1)  # the evidence is drawn above the proportions
        self.ax_.patch.set_visible(False)
        if legend:
            legend_above(self.ax_, ncols=2, handles=lines + shares)
        return self
