"""Campaigns: many runs that belong together, and the tables that they make.

>>> from evidence import campaign
>>> campaign("alpha-pinene").tasks()[0]
{'key': 'seed 0', 'seed': 0}
"""

from __future__ import annotations

from evidence.bounds.campaign import GLOBAL
from evidence.front_door.campaign import AUTOMATIC
from evidence.intervals.coverage import COVERAGE
from evidence.intervals.recovery import RECOVERY
from evidence.library.alpha_pinene import ALPHA_PINENE
from evidence.library.library_fits import LIBRARY
from evidence.multiple_shooting.campaign import MULTIPLE_SHOOTING
from evidence.rational.campaign import RATIONAL, RATIONAL_NOISE
from evidence.running.campaign import Campaign, Record
from evidence.separable.campaign import SEPARABLE
from evidence.transcription.campaign import TRANSCRIPTION_STUDY, TRANSCRIPTION_STUDY_QUICK
from odefit.common.errors import InputError, did_you_mean

__all__ = ["CAMPAIGNS", "Campaign", "Record", "campaign"]

# All campaigns by name
CAMPAIGNS: dict[str, Campaign] = {
    c.name: c
    for c in (
        *(ALPHA_PINENE, AUTOMATIC, COVERAGE, GLOBAL, LIBRARY, MULTIPLE_SHOOTING),
        *(RATIONAL, RATIONAL_NOISE),
        *(RECOVERY, SEPARABLE, TRANSCRIPTION_STUDY, TRANSCRIPTION_STUDY_QUICK),
    )
}


def campaign(name: str) -> Campaign:
    """Return the campaign of that name."""
    if name not in CAMPAIGNS:
        have = ", ".join(sorted(CAMPAIGNS))
        hint = did_you_mean(name, CAMPAIGNS) or ";"
        raise InputError(f"there is no campaign {name!r}{hint} campaigns are: {have}")
    return CAMPAIGNS[name]
