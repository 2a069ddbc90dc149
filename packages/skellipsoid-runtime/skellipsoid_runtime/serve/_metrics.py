"""Counters and histograms of the server for Prometheus."""

from typing import TYPE_CHECKING

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

if TYPE_CHECKING:
    from ._models import Loaded

_SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
_TENTHS = (0.01, 0.05, *(tenth / 10 for tenth in range(1, 11)))
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
CONTENT_TYPE = CONTENT_TYPE_LATEST


class Metrics:
    """Counters of one server, in a registry of its own."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        self.requests = Counter("skellipsoid_requests", "Requests to /predict by status", ["status"], registry=registry)
        self.seconds = Histogram(
            "skellipsoid_request_seconds", "Time to the answer of a request", buckets=_SECONDS, registry=registry
        )
        self.texts = Counter("skellipsoid_texts", "Texts that were answered", registry=registry)
        self.open_texts = Counter("skellipsoid_open_texts", "Texts that were answered open", registry=registry)
        self.actions = Counter(
            "skellipsoid_actions", "Texts that were answered, asked about and left open", ["action"], registry=registry
        )
        for action in ("answer", "ask", "open"):
            self.actions.labels(action)
        self.p_values = Histogram(
            "skellipsoid_p_value", "Conformal p-values of texts", buckets=_TENTHS, registry=registry
        )
        self.batch = Histogram("skellipsoid_batch_texts", "Texts of a batch", buckets=_SIZES, registry=registry)
        self.waiting = Gauge("skellipsoid_waiting_texts", "Texts that wait for a batch", registry=registry)
        self.log_errors = Counter("skellipsoid_log_errors", "Batches that the log lacks", registry=registry)
        self.changes = Counter("skellipsoid_model_changes", "Changes of the model", ["result"], registry=registry)
        for result in ("taken", "failed", "returned"):
            self.changes.labels(result)
        self.model = Gauge(
            "skellipsoid_model_info", "The model that answers", ["version", "folder", "program"], registry=registry
        )

    def set_model(self, model: "Loaded") -> None:
        """Name the model that answers."""
        self.model.clear()
        self.model.labels(model.version, model.folder.name, model.program).set(1)

    def written(self) -> bytes:
        """Give all in the format of Prometheus."""
        return generate_latest(self._registry)
