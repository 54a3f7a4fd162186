"""All kinds of files that may come from strangers, with their shares of the mutated cases."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from input_kinds import Kind
from model_inputs import antimony_case, prepare_antimony, prepare_models, sbml_case
from petab_inputs import petab_case, prepare_petab
from problem_inputs import (
    check_case,
    doses_case,
    guesses_case,
    new_case,
    prepare_problems,
    problem_case,
    table_case,
)
from written_inputs import (
    cache_case,
    checkpoint_case,
    prepare_cache,
    prepare_checkpoints,
    prepare_results,
    result_case,
)


def nothing(_: Path) -> None:
    """Prepare nothing."""


KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("problem", 0.2, prepare_problems, problem_case),
        Kind("table", 0.12, prepare_problems, table_case),
        Kind("doses", 0.1, prepare_problems, doses_case),
        Kind("check", 0.06, prepare_problems, check_case),
        Kind("new", 0.06, nothing, new_case),
        Kind("guesses", 0.03, nothing, guesses_case),
        Kind("petab", 0.14, prepare_petab, petab_case),
        Kind("sbml", 0.1, prepare_models, sbml_case),
        Kind("antimony", 0.05, prepare_antimony, antimony_case),
        Kind("result", 0.1, prepare_results, result_case),
        Kind("checkpoint", 0.04, prepare_checkpoints, checkpoint_case),
        Kind("cache", 0.03, prepare_cache, cache_case),
    )
}
