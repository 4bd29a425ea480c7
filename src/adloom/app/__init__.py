"""Composition roots: read settings, build, run."""
