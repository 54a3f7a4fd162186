"""The base of every part of odefit: arrays, errors, and packages that may be missing."""
