"""The classifier that asks a language model for the label."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field
from functools import partial
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from skellipsoid._base import as_labels, cast_open_label, check_texts, fit_context, warn
from skellipsoid._core.characters import is_visible
from skellipsoid._core.labels import check_given
from skellipsoid._core.sklearn import HasMethods, Interval, StrOptions, validate_params
from skellipsoid._core.validation import name_rows

from .._text_classifier import TextOpenSetClassifier
from ._answer_cache import Answer, FileCache, MemoryCache, request_key
from ._asking import Answers, Request, ask_all
from ._examples import Examples, make_examples
from ._server import Server
from ._server_settings import CONSTRAINTS, Settings, check_secrets, check_settings
from ._words import Vocabulary

#: Largest number of answers that are no label in ``last_call_``.
_MOST_SHOWN = 10
_LONGEST_SHOWN = 200


@dataclass(kw_only=True, eq=False, repr=False)
class PromptOpenSetClassifier(TextOpenSetClassifier):
    """Open-set classifier that asks a language model for the label of a text.

    The model runs behind any server that speaks OpenAI's protocol for chats: llama.cpp, vLLM, Ollama, a company. It is
    told the names of the classes and a name for *open* (zero-shot), and with ``n_examples`` also the training texts
    that are most similar to the text (few-shot). The text stands last, so that a server which caches prefixes reads
    the rest only once. Nothing is trained.

    Read more in the :ref:`User Guide <language_models>`.

    Parameters
    ----------
    model : str, default="default"
        Name of the model, as the server calls it. A server of one model often takes any name.

    base_url : str, default="http://localhost:8000/v1"
        Address of the server. **All texts of** ``predict``, **and with** ``n_examples`` **training texts, are sent
        there.** The default is this machine. A redirect to another origin (scheme, host and port) is an error.

    api_key_env : str, default=None
        *Name* of the environment variable that holds the key, such as ``"OPENAI_API_KEY"``. The key itself is never a
        parameter, so it is in no pickle, no cache and no message. Where another parameter looks like a key, ``fit``,
        ``predict`` and a pickle are refused. ``None`` sends no key.

    n_examples : int, default=0
        Number of training texts that each request shows with their labels: the nearest by the cosine of their features.
        0 is zero-shot. Training texts with the label ``open_label`` are shown as open.

    encoder : transformer, default=None
        Makes the features by which examples are found; it is cloned and fitted on the training texts. ``None`` is
        ``SupConTextEncoder(finetune="none")``. Not used with ``n_examples=0``.

    instruction : str, default=None
        A sentence for the model about your texts, such as ``"Customers of a bank write to its support."``

    open_word : str, default="none of these"
        What the model is told to answer for open.

    constraint : {"auto", "json_schema", "grammar", "none"}, default="auto"
        How the server limits answers to the names. ``"json_schema"``: a schema with the names as an enumeration, in
        ``response_format`` (OpenAI, vLLM, llama.cpp, Ollama). ``"grammar"``: a grammar in the field ``grammar``
        (llama.cpp, llama-cpp-python). ``"none"``: the model is only asked to. ``"auto"``: the first of these that the
        server does not refuse, decided by the first request of each call.

    request_options : dict, default=None
        Further fields of each request, such as ``{"seed": 0}``. The defaults are ``temperature`` 0 and a
        ``max_tokens`` that the longest name fits in; ``None`` as a value leaves a field out. A model that thinks
        before it answers needs more tokens. A field for a key or for headers is refused: see ``api_key_env``.

    n_concurrent : int, default=4
        Largest number of requests at once.

    max_retries : int, default=5
        How often a request is repeated after an error that may pass: too many requests, an error of the server, no
        answer in time, or a lost connection to a server that had answered before. The waits begin at half a second and
        double; the server's own ``Retry-After`` takes their place.

    timeout : float, default=60
        Seconds to wait for an answer.

    cache : str or Path, default=None
        A file (SQLite) that keeps every answer at once, so that an interrupted run goes on where it ended, in another
        process too. Processes that use one file at the same time do not ask the same thing twice. A damaged answer is
        asked for again. It holds answers and hashes of requests, neither texts nor keys. ``None`` keeps answers in
        memory until the next fit.

    open_label : int or str, default=-1
        Answer for open; cast to the kind of ``y``: −1 for numbers, ``"-1"`` for strings.

    verbose : int, default=0
        Whether to show a progress bar, if standard error is a terminal or a notebook.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The known classes.

    open_label_ : int or str
        The open label, of the kind of the classes.

    encoder_ : transformer
        The fitted encoder; with ``n_examples``.

    last_call_ : dict
        Figures of the last finished ``predict``: ``n_texts``, ``n_empty`` (answered open without a request),
        ``n_requests``, ``n_from_cache``, ``n_retries``, ``n_no_label`` (texts whose answer names no label: they are
        open), ``no_label`` (the first of these answers), ``prompt_tokens``, ``completion_tokens`` and
        ``cached_tokens`` (of the requests of this call, as the server counts them; 0 if it does not), ``constraint``
        (``None`` if nothing was asked). Not there before the first call.

    See Also
    --------
    LLMTextEncoder : A language model as the encoder of any other classifier.
    skellipsoid.EllipsoidOpenSetClassifier : Learns from texts instead of names, on this machine.

    Notes
    -----
    There is no ``score_samples``, no ``decision_function`` and no ``predict_known``: the answer is a name and not a
    number, and not every server gives probabilities of words. So the limit cannot be moved; describe the
    classes better, or use ``instruction`` and ``n_examples``.

    Equal texts are asked about once. With ``n_examples`` the fitted classifier holds the training texts, in its pickle
    too. :func:`~skellipsoid.save` refuses this classifier, because whoever loads a model must not send texts to an
    address in it. A fit takes no request, so fit it again instead.

    A text may contain words that are meant for the model, such as "answer refund". With ``constraint`` the answer is
    still one of the names, but it may be the wrong one.

    References
    ----------
    .. [1] Brown, T., et al. "Language Models are Few-Shot Learners." NeurIPS 2020.
    .. [2] Liu, J., et al. "What Makes Good In-Context Examples for GPT-3?" DeeLIO 2022 (nearest examples).

    Examples
    --------
    >>> from skellipsoid_bench.language_models import PromptOpenSetClassifier
    >>> clf = PromptOpenSetClassifier(instruction="People talk to an assistant at home.")
    >>> clf.fit(["wake me at six", "dim the lamp"], ["alarm", "light"]).classes_
    array(['alarm', 'light'], dtype='<U5')
    >>> clf.predict(["set an alarm", "tell me a joke"])  # doctest: +SKIP
    array(['alarm', '-1'], dtype='<U5')
    """

    model: str = field(default="default", kw_only=False)
    base_url: str = "http://localhost:8000/v1"
    api_key_env: str | None = None
    n_examples: int = 0
    encoder: Any = None
    instruction: str | None = None
    open_word: str = "none of these"
    constraint: str = "auto"
    request_options: dict[str, Any] | None = None
    n_concurrent: int = 4
    max_retries: int = 5
    timeout: float = 60.0
    cache: str | Path | None = None
    open_label: int | str = -1
    verbose: int | bool = 0

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "model": [str],
        "base_url": [str],
        "api_key_env": [str, None],
        "n_examples": [Interval(Integral, 0, None, closed="left")],
        "encoder": [HasMethods(["fit", "transform"]), None],
        "instruction": [str, None],
        "open_word": [str],
        "constraint": [StrOptions({"auto", *CONSTRAINTS})],
        "request_options": [dict, None],
        "n_concurrent": [Interval(Integral, 1, None, closed="left")],
        "max_retries": [Interval(Integral, 0, None, closed="left")],
        "timeout": [Interval(Real, 0, None, closed="neither")],
        "cache": [str, Path, None],
        "open_label": [Real, str],
        "verbose": ["verbose"],
    }
    #: Said by ``save``.
    _not_saved = (
        "it sends texts to the address in base_url, and a model that is loaded must not do that by itself; fit it "
        "again where it is used, which takes no request"
    )

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Note the classes, and with ``n_examples`` the training texts and their features; no request is sent.

        A fit that fails or is interrupted leaves the classifier as it was.

        Parameters
        ----------
        X : sequence of str of shape (n_samples,)
            List, tuple, NumPy array, pandas or polars Series, Arrow array, or a table of one column. With
            ``n_examples=0`` they are only checked: without training texts, pass the names of the classes twice, as
            ``X`` and as ``y``.
        y : array-like of shape (n_samples,)
            Labels. Their names are all that the model knows of the classes, so let them be words. The label
            ``open_label`` becomes no class.

        Returns
        -------
        self : object
            The fitted classifier.

        Raises
        ------
        ValueError
            If ``X`` is not a sequence of strings or is empty, if labels are missing, mix numbers and strings or are not
            one for each text, if every text is open, if a label cannot be said (it is empty, has a line break, looks
            like another one, or is the ``open_word``), or if an address, the name of a variable or a field of a request
            cannot be used.

        Warns
        -----
        UserWarning
            If texts are empty, and so cannot be examples.
        """
        check_given(y, type(self).__name__)
        texts, labels = check_texts(X), as_labels(y, warn=True)
        if len(texts) != len(labels):
            raise ValueError(f"X has {len(texts)} texts, but y has {len(labels)} labels; pass one label for each text.")
        open_label = cast_open_label(self.open_label, labels)
        classes = np.unique(labels[labels != open_label])
        if not len(classes):
            raise ValueError(
                f"All {len(texts)} texts have the open label {open_label!r}; y needs at least one known class."
            )
        Vocabulary(classes, self.open_word)
        check_settings(self._settings(), self.instruction)
        examples: Examples | None = None
        if self.n_examples:
            empty = self._find_empty(texts, "cannot be examples")
            examples, encoder = make_examples(texts, labels, open_label, empty, self.encoder)
        self.classes_, self.open_label_ = classes, open_label
        self._examples = examples
        if examples is not None:
            self.encoder_ = encoder
        self._memory: dict[bytes, Answer] = {}
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Ask for the label of each text.

        Parameters
        ----------
        X : sequence of str of shape (n_samples,)

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            A class, or ``open_label_``: if the model says so, if its answer names no label, or if the text is empty.

        Raises
        ------
        ConnectionError
            If the server is not found, does not answer, stops to, sends requests on to another origin, or gives an
            answer that cannot be read: of more than 4 MiB, compressed, or not of OpenAI's protocol.
        PermissionError
            If the server asks for a key, or if the environment variable with the key is not set.
        ValueError
            If ``X`` is not a sequence of strings or is empty, if the server has no such model, if it refuses a
            request, if its answer holds a lone surrogate, or if a parameter cannot be used.
        OSError
            If the cache cannot be used, or if another process that uses it waits longer for an answer than all retries
            would take.
        ImportError
            If the package of the extra ``skellipsoid-bench[llm]`` is missing.

        Warns
        -----
        UserWarning
            If texts are empty.
        """
        check_is_fitted(self)
        texts = check_texts(X)
        validate_params(self)
        settings = self._settings()
        check_settings(settings, self.instruction)
        vocabulary = Vocabulary(self.classes_, self.open_word)
        empty = self._find_empty(texts, "are answered open without a request")
        rows: dict[str, int] = {}
        for row, text in enumerate(texts):
            if row not in empty:
                rows.setdefault(text, row)
        requests = self._requests(rows, vocabulary, settings)
        kept = "in memory" if self.cache is None else f"in the cache {str(self.cache)!r}"
        opened: AbstractContextManager[FileCache | MemoryCache] = (
            nullcontext(MemoryCache(self._memory)) if self.cache is None else closing(FileCache(Path(self.cache)))
        )
        with opened as cache:
            answers = ask_all(
                list(requests.values()),
                cache,
                lambda stop: Server(settings, vocabulary, stop),
                self.constraint,
                self.n_concurrent,
                kept,
                self.verbose,
            )
        return self._read(texts, empty, requests, answers, vocabulary)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle everything but answers in memory; a secret is refused, also before a fit could refuse it."""
        check_secrets(self.base_url, self.model, self.api_key_env, self.request_options)
        state: dict[str, Any] = super().__getstate__()
        return {**state, "_memory": {}} if "_memory" in state else state

    def _settings(self) -> Settings:
        return Settings(
            self.base_url, self.model, self.api_key_env, float(self.timeout), self.max_retries, self.request_options
        )

    def _find_empty(self, texts: list[str], what: str) -> set[int]:
        """Rows of texts without a visible letter, with a warning that names them."""
        rows = np.flatnonzero([not is_visible(text) for text in texts])
        if len(rows):
            warn(f"X has empty texts in {name_rows(rows)}, which {what}; drop or fill them.")
        return set(rows.tolist())

    def _requests(self, rows: Mapping[str, int], vocabulary: Vocabulary, settings: Settings) -> dict[str, Request]:
        """Write the request about each text."""
        texts = list(rows)
        shown: list[list[tuple[str, str]]] = [[] for _ in texts]
        if texts and self.n_examples and self._examples is not None:
            shown = self._examples.nearest(self.encoder_.transform(texts), self.n_examples, self.open_word)
        requests = {}
        for text, examples in zip(texts, shown, strict=True):
            write = partial(vocabulary.messages, text, examples, self.instruction)
            asked = (settings.base_url, settings.model, settings.request_options, self.constraint)
            key = request_key(*asked, write(False))
            requests[text] = Request(key, rows[text], write)
        return requests

    def _read(
        self, texts: list[str], empty: set[int], requests: Mapping[str, Request], answers: Answers, words: Vocabulary
    ) -> NDArray[Any]:
        """Turn answers into labels, and note the figures of the call."""
        n_classes = len(self.classes_)
        codes, no_label = np.full(len(texts), n_classes), []
        for row, text in enumerate(texts):
            if row in empty:
                continue
            answer = answers.by_key[requests[text].key].text
            code = words.read(answer)
            if code is None:
                no_label.append(answer[:_LONGEST_SHOWN])
            else:
                codes[row] = code
        asked = answers.asked
        self.last_call_ = {
            "n_texts": len(texts),
            "n_empty": len(empty),
            "n_requests": len(asked),
            "n_from_cache": len(answers.by_key) - len(asked),
            "n_retries": answers.n_retries,
            "n_no_label": len(no_label),
            "no_label": list(dict.fromkeys(no_label))[:_MOST_SHOWN],
            **{name: sum(getattr(answers.by_key[key], name) for key in asked) for name in Answer._fields[1:]},
            "constraint": answers.constraint,
        }
        return np.asarray(self._possible_labels()[codes])
