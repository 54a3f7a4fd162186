"""What every part of odefit builds on: arrays, errors, and packages that may be missing."""
