"""Proofs of an answer: those still requested, and their effects on a fit."""

from __future__ import annotations

from dataclasses import replace

from odefit.assessment.certification import RegionProof
from odefit.fitting.fit_stages import FitState, answered
from odefit.methods.estimate import Estimate
from odefit.methods.local.cost_tolerance import CostTolerance
from odefit.methods.polish import answer
from odefit.result.profiles import Profiles


def uncertified(state: FitState) -> bool:
    """Return whether bounds have yet to be proved, or proved in continuous time for a file."""
    if not answered(state) or not state.wishes.certify:
        return False
    proof = state.estimate.certificate
    return proof is None or (state.wishes.certificate is not None and proof.discretised is True)


def without_region(state: FitState) -> bool:
    """Return whether a confidence region has yet to be proved."""
    return answered(state) and state.wishes.region


def with_proof(state: FitState, proof: Estimate) -> FitState:
    """Return the fit with the bounds of a proof.

    If the proof has found a better point, that becomes the answer.
    """
    present, estimate = state.answer, state.estimate
    proposed = tuple(proof.starts)
    better = [s for s in proposed if s.cost < present.evaluation.cost]
    starts = [replace(s, index=len(estimate.starts) + i) for i, s in enumerate(better)]
    more = replace(estimate, starts=(*estimate.starts, *starts), certificate=proof.certificate)
    if all(CostTolerance.of(present.forward).same(s, present.start) for s in better):
        more = replace(more, starts=estimate.starts)
    else:
        present = answer(state.problem, more, state.control, state.wishes.polish) or present
    return replace(state, outcome=present, estimate=more, proposed=proposed, unproved="")


def with_region(state: FitState, proof: RegionProof) -> FitState:
    """Return the fit with a confidence region, the profiles beside it, and bounds.

    The bounds of the method's own proof stay, if they are closer.
    """
    known, new = state.estimate.certificate, proof.estimate.certificate
    closer = new is not None and (known is None or known.discretised or new.gap < known.gap)
    state = with_proof(state, proof.estimate) if closer else state
    profiles = None if proof.region.assumed else Profiles(**vars(proof.profiles))
    return replace(state, region=proof.region, profiles=profiles, no_region="")
