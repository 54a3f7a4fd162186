"""Groups of experiments with their own unknowns: the parts into which a problem falls.

Unknowns of the noise may be shared by several groups; they connect only the fits of these.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.problem.binding import dynamic_unknowns, unknowns_of
from odefit.problem.condition import Condition
from odefit.problem.noise import Noise
from odefit.problem.parameters import Unknown
from odefit.problem.problem import Problem
from odefit.problem.vector_field import VectorField


@dataclass(frozen=True)
class Part:
    """The problem of some experiments, and the indices of its unknowns among all.

    `shared` are the indices of unknowns shared with other parts, those of the noise. A part made
    without noise does not have them.
    """

    problem: Problem
    places: IntArray
    shared: frozenset[int] = frozenset()

    @property
    def unshared(self) -> IntArray:
        """The indices of the unknowns that no other part has."""
        return np.array([p for p in self.places.tolist() if p not in self.shared], dtype=np.intp)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its experiments."""
        return tuple(e.name for e in self.problem.experiments)

    def alone_at(self, vector: Array) -> Problem:
        """Return its problem with shared unknowns fixed as in a vector of all, shape (n,)."""
        shared = {
            self.problem.keys[k]: float(vector[place])
            for k, place in enumerate(self.places.tolist())
            if place in self.shared
        }
        return self.problem.with_unknowns(fix=shared) if shared else self.problem


@dataclass(frozen=True)
class Group:
    """Experiments that share unknowns, by number, and these unknowns."""

    acting: frozenset[int]
    members: tuple[int, ...]


@dataclass(frozen=True)
class Groups:
    """The groups of a problem, and the unknowns that act on several of them."""

    groups: tuple[Group, ...]
    joining: frozenset[int]


_known_groups: WeakKeyDictionary[Problem, Groups | None] = WeakKeyDictionary()
_known_parts: WeakKeyDictionary[Problem, tuple[Part, ...]] = WeakKeyDictionary()


def groups_of(problem: Problem) -> Groups | None:
    """Return the groups of experiments of a problem; None if all are connected.

    An unknown that acts on several experiments connects them, unless it acts only on the noise.
    The groups of a problem are found once.
    """
    if problem not in _known_groups:
        _known_groups[problem] = _groups(problem)
    return _known_groups[problem]


def _groups(problem: Problem) -> Groups | None:
    if len(problem.conditions) < 2:
        return None
    field = VectorField.of(problem.model, problem.conditions)
    acting = [_acting(problem, c, field) for c in problem.conditions]
    on_values = set[int]().union(*(values for values, _ in acting))
    connected = _connected([values | (noise & on_values) for values, noise in acting])
    connected = [(unknowns, members) for unknowns, members in connected if unknowns]
    for unknowns, members in connected:
        unknowns.update(*(acting[i][1] for i in members))
    counts = Counter(i for unknowns, _ in connected for i in unknowns)
    if len(connected) < 2 or len(counts) < len(problem.unknowns):
        return None
    groups = sorted((Group(frozenset(u), tuple(m)) for u, m in connected), key=lambda g: g.members)
    return Groups(tuple(groups), frozenset(i for i, count in counts.items() if count > 1))


def separate_parts(problem: Problem) -> tuple[Part, ...]:
    """Return the parts of a problem, made once; an empty tuple if its experiments are connected."""
    known = _known_parts.get(problem)
    if known is None:
        known = parts_of_groups(problem, groups_of(problem))
        _known_parts[problem] = known
    return known


def acting_on_values(problem: Problem) -> list[frozenset[int]]:
    """Return the unknowns that act on the predicted values of each experiment."""
    field = VectorField.of(problem.model, problem.conditions)
    return [frozenset(_acting(problem, c, field)[0]) for c in problem.conditions]


def loose_groups(problem: Problem, most: int) -> Groups | None:
    """Return groups of experiments that may share unknowns; None if all are in one group.

    Only unknowns that act on at most `most` experiments join these to a group, so that each
    experiment is one for `most` of one.
    """
    acting = _acting_anywhere(problem)
    counts = Counter(i for unknowns in acting for i in unknowns)
    few = {i for i, count in counts.items() if count <= most}
    groups = [
        Group(frozenset[int]().union(*(acting[k] for k in members)), tuple(members))
        for _, members in _connected([unknowns & few for unknowns in acting])
    ]
    if len(groups) < 2:
        return None
    sharing = Counter(i for group in groups for i in group.acting)
    return Groups(tuple(groups), frozenset(i for i, count in sharing.items() if count > 1))


def parts_of_groups(problem: Problem, groups: Groups | None) -> tuple[Part, ...]:
    """Return the part of each group; an empty tuple without groups, or if one is not separate."""
    every = [] if groups is None else [(g, groups.joining) for g in groups.groups]
    parts = [part_of(problem, group, joining) for group, joining in every]
    return tuple(p for p in parts if p is not None) if all(parts) else ()


def _connected(unknowns: Sequence[set[int]]) -> list[tuple[set[int], list[int]]]:
    """Return the groups of experiments that share unknowns: these unknowns, and the members.

    `unknowns` has those of each experiment.
    """
    connected: list[tuple[set[int], list[int]]] = []
    for number, acting in enumerate(unknowns):
        joint, members = set(acting), [number]
        for other in [g for g in connected if g[0] & joint]:
            connected.remove(other)
            joint, members = joint | other[0], members + other[1]
        connected.append((joint, sorted(members)))
    return connected


def part_with(problem: Problem, index: int) -> Part | None:
    """Return the part made of the experiments on which one unknown acts.

    The unknowns that act on other experiments as well are shared. None is returned if the unknown
    acts on all experiments or on none, or if the part cannot be separate.
    """
    acting = _acting_anywhere(problem)
    members = tuple(k for k, unknowns in enumerate(acting) if index in unknowns)
    if not 0 < len(members) < len(acting):
        return None
    inside = set[int]().union(*(acting[k] for k in members))
    outside = set[int]().union(*(u for k, u in enumerate(acting) if k not in members))
    return part_of(problem, Group(frozenset(inside), members), frozenset(inside & outside))


def _acting_anywhere(problem: Problem) -> list[set[int]]:
    """Return the unknowns that act on each experiment's measurements or their noise."""
    field = VectorField.of(problem.model, problem.conditions)
    return [set[int]().union(*_acting(problem, c, field)) for c in problem.conditions]


def _acting(
    problem: Problem, condition: Condition, field: VectorField
) -> tuple[set[int], set[int]]:
    """Return the unknowns that act on an experiment's measurements, including noise."""
    names, noise = set(field.scalars), set[str]()
    numbers = {u.name: i for i, u in enumerate(problem.unknowns) if u.kind == "noise"}
    estimated = set[int]()
    for name in condition.series:
        names |= problem.model.observables[name].names
        model = problem.noise.get(name, Noise())
        for expression in model.expressions:
            noise |= {n for s in expression.names for n in _written_out(problem, s)}
        noise_unknowns = (model.unknown(name), model.correlation_unknown(name))
        estimated |= {numbers[n] for n in noise_unknowns if n in numbers}
    known = condition.scalars.keys()
    values = dynamic_unknowns(condition, sorted(names & known))
    of_noise = [unknowns_of(condition.scalars[n], condition.scalars) for n in noise & known]
    return values, estimated.union(*of_noise)


def _written_out(problem: Problem, name: str) -> frozenset[str]:
    observable = problem.model.observables.get(name)
    return frozenset({name}) if observable is None else observable.names


def part_of(
    problem: Problem, group: Group, joining: frozenset[int], *, without: bool = False
) -> Part | None:
    """Return the problem of a group of experiments; None if it cannot be separate.

    `without` is true if `problem` lacks the connecting unknowns, those of the noise.
    """
    experiments = [problem.experiments[i] for i in group.members]
    names = {e.name for e in experiments}
    alone = problem.with_experiments(experiments)
    acting = group.acting - joining if without else group.acting
    acting_unknowns = {i: problem.unknowns[i] for i in acting}
    places: list[int] = []
    others: dict[str, float] = {}
    for unknown in alone.unknowns:
        same = [i for i, u in acting_unknowns.items() if _is_same(u, unknown, names)]
        if len(same) > 1:
            return None
        places += same
        if not same:
            others[unknown.key] = _any_value(unknown)
    if len(places) != len(acting):
        return None
    alone = alone.with_unknowns(fix=others) if others else alone
    shared = joining if without else acting & joining
    return Part(alone, np.array(places, dtype=np.intp), shared)


def _is_same(one: Unknown, other: Unknown, names: set[str]) -> bool:
    """Return whether an unknown of all is one of some experiments."""
    if (one.name, one.kind) != (other.name, other.kind):
        return False
    return one.experiment == other.experiment or (
        other.experiment is None and one.experiment in names
    )


def _any_value(unknown: Unknown) -> float:
    """Return a value for an unknown without effect on values, positive if possible.

    It may be the size of the noise.
    """
    p = unknown.parameter
    values = (p.guess, 0.5 * (p.lower + p.upper), p.lower, p.upper, 1.0)
    finite = [float(v) for v in values if v is not None and math.isfinite(v)]
    return next((v for v in finite if v > 0 and p.lower <= v <= p.upper), finite[0])
