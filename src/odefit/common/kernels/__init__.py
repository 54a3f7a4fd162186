"""A compiler of numerical kernels: functions of numbers and arrays, in a small part of Python."""
