"""Campaigns: many runs that belong together, and the tables that they make.

>>> from studies import campaign
>>> campaign("alpha-pinene").tasks()[0]
{'key': 'seed 0', 'seed': 0}
"""

from __future__ import annotations

from odefit.common.errors import InputError, did_you_mean
from studies.alpha_pinene import ALPHA_PINENE
from studies.automatic import AUTOMATIC
from studies.campaign import Campaign, Record
from studies.coverage import COVERAGE
from studies.global_campaign import GLOBAL
from studies.library_fits import LIBRARY
from studies.multiple_shooting import MULTIPLE_SHOOTING
from studies.rational import RATIONAL, RATIONAL_NOISE
from studies.recovery import RECOVERY
from studies.separable import SEPARABLE
from studies.transcription_study import TRANSCRIPTION_STUDY, TRANSCRIPTION_STUDY_QUICK

__all__ = ["CAMPAIGNS", "Campaign", "Record", "campaign"]

CAMPAIGNS: dict[str, Campaign] = {
    c.name: c
    for c in (
        *(ALPHA_PINENE, AUTOMATIC, COVERAGE, GLOBAL, LIBRARY, MULTIPLE_SHOOTING),
        *(RATIONAL, RATIONAL_NOISE),
        *(RECOVERY, SEPARABLE, TRANSCRIPTION_STUDY, TRANSCRIPTION_STUDY_QUICK),
    )
}
"""All campaigns by name."""


def campaign(name: str) -> Campaign:
    """Return the campaign of that name.

    Raises
    ------
    InputError
        There is none; the message proposes a similar one.
    """
    if name not in CAMPAIGNS:
        have = ", ".join(sorted(CAMPAIGNS))
        hint = did_you_mean(name, CAMPAIGNS) or ";"
        raise InputError(f"there is no campaign {name!r}{hint} campaigns are: {have}")
    return CAMPAIGNS[name]
