"""Paragraphs that are the same in the docstrings of several methods, written once."""

from skellipsoid._core.paragraphs import with_paragraphs
from skellipsoid.baselines._shared_docs import PARAGRAPHS

#: What a name in a line ``{name}`` of a docstring stands for, beside those of skellipsoid's own methods.
_OF_ENCODERS = {
    "encoder_model": """
        model_name : str, default="sentence-transformers/all-MiniLM-L6-v2"
            A sentence-transformers model or any Hugging Face encoder, as for :class:`~skellipsoid.SupConTextEncoder`.

        finetune : {"full", "head"}, default="full"
            What is trained. ``"full"``: the text model and the linear layer, as published (with the published number of
            epochs, hours on a CPU). ``"head"``: the linear layer; the text model is frozen and embeds each text once
            (seconds on a CPU).
        """,
    "encoder_training": """
        batch_size : int, default=128
            Texts per step.

        max_iter : int, default=100
            Largest number of epochs.

        early_stopping : bool, default=True
            Whether validation texts decide when to stop: when their accuracy has not improved for ``n_iter_no_change``
            epochs. The classifier of the training predicts them. The weights of the best epoch are kept, of several the
            first. Validation texts are ``X_val`` of ``fit``, or else ``validation_fraction`` of the training texts.

        validation_fraction : float, default=0.1
            Proportion of each class's texts that are validation texts, with ``early_stopping`` and without ``X_val``.
            They are not trained on. Copies of a text are held out together.

        n_iter_no_change : int, default=10
            Number of epochs without improvement after which training stops, with ``early_stopping``.

        duplicates : {"once", "each", "off"}, default="once"
            Treatment of exact and near duplicates of a text within its class. ``"once"``: the encoder is trained on one
            of several exact duplicates, and duplicates are held out together. ``"each"``: it is trained on all of them.
            ``"off"``: duplicates are not searched.

        max_length : int, default=None
            Largest number of tokens of a text; longer texts are truncated. ``None`` is the model's own limit.

        open_label : int or str, default=-1
            Texts with this label are not trained on. Cast to the kind of ``y``: −1 for numbers, ``"-1"`` for strings.

        device : str, default="auto"
            Device of torch: ``"auto"`` is CUDA if it is available, else the CPU. On CUDA, full fine-tuning uses mixed
            precision.

        random_state : int, RandomState instance or None, default=None
            Determines batches, dropout, what is drawn, and validation texts.

        verbose : int, default=0
            Whether to show progress bars, if standard error is a terminal or a notebook.
        """,
    "encoder_attributes": """
        classes_ : ndarray of shape (n_classes,)
            The known classes.

        finetune_ : {"full", "head"}
            What was trained.

        weight_ : ndarray of shape (n_features, n_features)
            W; training starts at the identity.

        bias_ : ndarray of shape (n_features,)
            b.

        groups_ : ndarray of shape (n_samples,)
            Texts with the same number are held out together: the ``groups`` given to ``fit``, else the duplicates
            found.

        n_iter_ : int
            Number of epochs.

        loss_curve_ : list of float
            Mean loss per text in each epoch.

        validation_scores_ : list of float or None
            Accuracy on the validation texts after each epoch; ``None`` without early stopping.

        stop_reason_ : {"max_iter", "n_iter_no_change"}
            Why training ended: all epochs were run, or the accuracy did not improve any more.

        training_data_sha256_ : str
            SHA-256 of the texts and labels given to ``fit``, as for :class:`~skellipsoid.SupConTextEncoder`.
        """,
}

published_docs = with_paragraphs(PARAGRAPHS | _OF_ENCODERS)
