"""The benchmarks behind `adloom bench`: what a request costs, as ratios in one run."""
