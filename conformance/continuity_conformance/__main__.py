"""`python -m continuity_conformance`: the command `continuity`, for a program that knows its interpreter and not where its scripts are."""

import sys

from continuity_conformance.cli.main import main

sys.exit(main())
