"""Evidence: campaigns of many runs and the tables that they make, see :mod:`evidence.registry`.

>>> from evidence import campaign
>>> campaign("alpha-pinene").tasks()[0]
{'key': 'alpha-pinene, seed 0', 'problem': 'alpha-pinene', 'seed': 0}
"""

from __future__ import annotations

from evidence.registry import ROWS, row
from evidence.running.campaign import Campaign, Option, Record

__all__ = ["ROWS", "Campaign", "Option", "Record", "campaign", "row"]


def campaign(name: str) -> Campaign:
    """Return the campaign of that name; an InputError proposes a similar one."""
    return row(name).campaign()
