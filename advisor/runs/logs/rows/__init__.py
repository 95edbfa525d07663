"""Rows of a log: their kinds, segments, steps and series."""
