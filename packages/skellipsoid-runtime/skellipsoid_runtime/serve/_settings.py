"""The settings of the server, with their defaults and checks."""

from dataclasses import dataclass, fields
from pathlib import Path

from .. import _machine

#: Files that a server has open beside its connections: the log, a model that is loaded.
_OTHER_FILES = 40


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of a server.

    Parameters
    ----------
    wait_ms : float, default=5
        Milliseconds that a request waits for others to share its batch.
    max_batch : int, default=64
        Texts of a batch; a request with more is a batch of its own.
    max_queue : int, default=1024
        With this number of waiting texts, a request gets HTTP status 429, unless another client has more of them: its
        last request gets 429 then.
    max_connections : int, default=512
        Connections at a time; three quarters of them may wait for answers. If another one comes, the one that has
        waited longest for its client is closed. Fewer where the process may open fewer files.
    max_body : int, default=1048576
        Bytes of a request; more get the status 413, as all that is too long.
    max_texts : int, default=256
        Texts of a request.
    max_text : int, default=2000
        Characters of a text.
    max_characters : int, default=20000
        Characters of all texts of a request.
    body_seconds : float, default=30
        Seconds in which a body must arrive; else the status is 408. The lines before it, and the client's reading of
        the answer, have as long; then the connection is closed.
    keep_alive_seconds : float, default=75
        Seconds that a connection is kept for a next request: longer than a proxy or balancer in front keeps it.
    n_threads : int, default=0
        Batches that are computed at the same time, each by one thread; 0 is the number of cores.
    watch_seconds : float, default=1
        How often the model is looked at for a change; 0: only SIGHUP changes it.
    log : Path or None, default=None
        File for one line of JSON per answer.
    log_texts : bool, default=False
        Whether the log holds the texts too, which may be personal data.
    log_bytes : int, default=10485760
        Bytes after which the log begins a new file.
    log_files : int, default=5
        Earlier files of the log that are kept.

    Raises
    ------
    ValueError
        If a number is too small.

    Examples
    --------
    >>> from skellipsoid_runtime.serve import Settings
    >>> Settings(wait_ms=2).max_batch
    64
    """

    wait_ms: float = 5.0
    max_batch: int = 64
    max_queue: int = 1024
    max_connections: int = 512
    max_body: int = 2**20
    max_texts: int = 256
    max_text: int = 2000
    max_characters: int = 20_000
    body_seconds: float = 30.0
    keep_alive_seconds: float = 75.0
    n_threads: int = 0
    watch_seconds: float = 1.0
    log: Path | None = None
    log_texts: bool = False
    log_bytes: int = 10 * 2**20
    log_files: int = 5

    def __post_init__(self) -> None:
        for field in fields(self):
            value, default = getattr(self, field.name), field.default
            least = 0 if isinstance(default, float) or default == 0 else 1
            if isinstance(default, int | float) and not isinstance(default, bool) and not value >= least:
                raise ValueError(f"{field.name}={value!r} is too small; use a number from {least} on.")
        if self.log_texts and self.log is None:
            raise ValueError("log_texts=True needs a file to write to; pass log, or leave log_texts out.")

    @property
    def threads(self) -> int:
        """Number of threads that compute."""
        return self.n_threads or _machine.count_cores()

    @property
    def connections(self) -> int:
        """Connections at a time: half of the handles remain for those that are being opened and closed."""
        handles = _machine.count_handles()
        return (
            self.max_connections
            if handles is None
            else min(self.max_connections, max(1, (handles - _OTHER_FILES) // 2))
        )
