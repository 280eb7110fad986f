"""``python -m migraphx`` is ``migraphx-driver``."""

import sys

from .driver import main

sys.exit(main())
