"""The sharpness of enclosures: small remainders over larger boxes take more work.

Degree, accuracy and length of steps belong together. Polynomials of a higher degree gain nothing
while remainders come from long steps: there they grow by every variation of the Jacobian over the
box, and steep jumps multiply them.
"""

from __future__ import annotations

from typing import NamedTuple


class Sharpness(NamedTuple):
    """The `degree` of the polynomials, and the two limits of a step.

    `accuracy` is the avoidable error of a solution by longer steps, relative to the standard
    deviation of a residual, or to a tenth of the range of the data if that is not given. A step is
    too long if the norm of step times Jacobian exceeds `step_norm`. It counts as `step_cost` of the
    steps in which a box has to be enclosed, so that shorter steps do not run out before.
    """

    degree: int = 2
    accuracy: float = 1e-5
    step_norm: float = 1.5
    step_cost: float = 1.0

    def raised(self, level: int) -> Sharpness:
        """Return the sharpness some levels higher.

        Examples
        --------
        >>> raised = Sharpness().raised(2)
        >>> raised.degree, raised.step_norm
        (4, 0.75)
        """
        return Sharpness(
            self.degree + level,
            self.accuracy / 10.0**level,
            self.step_norm / (1 + level / 2),
            self.step_cost / (1 + level / 2),
        )
