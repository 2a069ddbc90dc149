"""``python -m skellipsoid_bench``: the command where it is not on the path."""

import sys

from .cli import main

sys.exit(main())
