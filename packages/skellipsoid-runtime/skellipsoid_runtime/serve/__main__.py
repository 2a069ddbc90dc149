"""``python -m skellipsoid_runtime.serve`` is ``skellipsoid-serve``."""

import sys

from ._command import main

sys.exit(main())
