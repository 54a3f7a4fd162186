"""Sliders for the unknowns of a problem in the browser, with curves that follow them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odefit.common.packages import require

if TYPE_CHECKING:
    from odefit.explorer.explorer import Explorer, explore

__all__ = ["Explorer", "explore"]


def __getattr__(name: str) -> Any:
    """Import the server at first use, which needs packages of the extra ``odefit[explore]``."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    for package in ("starlette", "uvicorn", "tomlkit"):
        require(package)
    from odefit.explorer import explorer

    return getattr(explorer, name)
