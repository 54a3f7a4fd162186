"""A problem discretised: equations between values at the points of a mesh."""
