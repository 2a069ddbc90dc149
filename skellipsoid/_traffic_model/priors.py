"""Priors of the model of the traffic, each as mean and standard deviation, and what evidence counts against them.

All were chosen on text (skellipsoid-bench/results/real_lines.rst has other values). The prior of the open share is
``_held_out.expected:TRAFFIC``. Another value changes predictions: raise ``answers_version`` of the classifiers, and
change the docstring of ``known_shift`` and the guide's *The method*, which repeat some.
"""

#: Known messages lie 0.3 to 1.4 farther out than held-out samples on four live bots, texts of the same hand 0 to 0.3:
#: an exponential distribution of this mean, so never nearer.
SHIFT = 0.5
SPREAD = (0.0, 0.1)  # of the logarithm of their spread
#: The place of open messages less the usual one, and the logarithm of their width over the usual one. Those of held-out
#: classes lie where samples of held-out classes do, those of other domains up to 2 farther out.
PLACE, WIDTH = (0.4, 0.4), (0.0, 0.3)
#: The place is drawn from Student's t with so many degrees of freedom: now and then it is far from the usual one.
PLACE_DEGREES = 4
MEAN_PLACE, MEAN_WIDTH, LEAST_WIDTH = 2.8, 0.6, 0.2
#: Weight of the samples of synthetic classes in the usual place: it is how α acts on the threshold.
SYNTHETIC_PART = 0.25
#: How far the log-odds of the right class lie below those of held-out samples of the same score, less the shift: where
#: messages lie farther out, they are also confused more often.
CONFUSION = (-0.3, 0.6)
#: Effective number of held-out samples in the fit of the right class on the score; largest number of messages of the
#: traffic that real open samples of the training count as, since they were gathered otherwise.
EVIDENCE, MOST_REAL = 200.0, 20
#: Smallest distance of open messages below known ones; proportion of open messages that look known.
LEAST_APART, LOOK_KNOWN = 0.6, 0.02
#: Penalty of open messages that lie nearer than known ones: loss of log-likelihood for each standard deviation.
NEARER = 1000.0
#: Held-out classes estimate how much likelier each gap is of an open message. This is the standard deviation of the
#: error of its logarithm, which is one error for all that users pick.
GAP_ERROR = 1.0
#: Largest number of messages that a log counts as: the model of its scores is not the truth.
MOST_MESSAGES = 50
#: Labels of earlier logs together count as at most this number for the open share, which differs from week to week.
MOST_ELSEWHERE = 10
#: Standard deviation of the error of a given open share, in logarithms.
TOLD_ERROR = 0.45
#: Where labels estimate the open share, the standard deviation of its prior is multiplied by this.
DOUBTED = 1.5
