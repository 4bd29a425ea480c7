"""Measures what the product promises, on data that lies beside: `python -m adloom.benchmark.classification`."""
