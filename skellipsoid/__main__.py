"""``python -m skellipsoid``: the command where it is not on the path."""

import sys

from .cli import main

sys.exit(main())
