"""Monomials as integers in degree reverse lexicographical order.

The exponents ``e_1 ... e_n`` are stored as their sums ``e_1``, ``e_1 + e_2``, ..., with the whole
sum in the highest bits. A product is then a sum of integers. Of two monomials the greater one in
the degree reverse lexicographical order (variable 1 being the greatest) is the greater integer. The
degree decides, then the smaller ``e_n``, then the smaller ``e_(n-1)``, and so on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

FIELD_BITS = 16
"""Number of bits of each field, with the highest kept free: degrees are below 2^15."""


class Packing:
    """Monomials in `count` variables.

    "Packed" are integers of sums as above; "exponents" are integers with the exponents themselves
    in the fields, from which divisibility and least common multiples are read.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._whole = (1 << (FIELD_BITS * count)) - 1
        self._ones = sum(1 << (FIELD_BITS * i) for i in range(count))
        self.guard = self._ones << (FIELD_BITS - 1)
        """The free bit of every field."""
        self.variables = tuple(self.pack([int(i == v) for i in range(count)]) for v in range(count))
        """Each variable, packed."""

    def pack(self, exponents: Sequence[int]) -> int:
        """Return the packed monomial with the given exponents."""
        total = result = 0
        for i, e in enumerate(exponents):
            total += e
            result |= total << (FIELD_BITS * i)
        return result

    def unpack(self, packed: int) -> tuple[int, ...]:
        """Return the exponents of a packed monomial."""
        return tuple(self._fields(self.exponents(packed)))

    def exponents(self, packed: int) -> int:
        """Return the integer of exponents of a packed monomial."""
        return packed - ((packed << FIELD_BITS) & self._whole)

    def sums(self, exponents: int) -> int:
        """Return the packed monomial of an integer of exponents."""
        # In the product with 1 + 2^16 + 2^32 + ... every field is the sum of those up to it.
        return (exponents * self._ones) & self._whole

    def _fields(self, integer: int) -> Iterator[int]:
        mask = (1 << FIELD_BITS) - 1
        return ((integer >> (FIELD_BITS * i)) & mask for i in range(self.count))

    def divides(self, a: int, b: int) -> bool:
        """Return whether `a` divides `b`, both given as integers of exponents."""
        return ((b | self.guard) - a) & self.guard == self.guard

    def lcm(self, a: int, b: int) -> int:
        """Return the least common multiple, everything given as integers of exponents."""
        keep = ((a | self.guard) - b) & self.guard  # of the fields in which a is not smaller
        mask = (keep - (keep >> (FIELD_BITS - 1))) | keep
        return (a & mask) | (b & ~mask & self._whole)

    def degree(self, packed: int) -> int:
        """Return the total degree of a packed monomial."""
        return packed >> (FIELD_BITS * (self.count - 1))
