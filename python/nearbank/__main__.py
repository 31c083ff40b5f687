# SPDX-License-Identifier: Apache-2.0
"""Runs the command line for `python -m nearbank`."""

import sys

from nearbank.cli import main

sys.exit(main())
