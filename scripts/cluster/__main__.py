"""``python scripts/cluster …``: the command line; see commands.py."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])

from cluster.commands import main  # noqa: E402

sys.exit(main())
