#!/usr/bin/env python
"""The console script `panelbench`, for a checkout."""

import sys

from panelbench.cli import main

if __name__ == "__main__":
    sys.exit(main())
