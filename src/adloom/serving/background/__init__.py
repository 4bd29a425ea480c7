"""Background work of a delivery process: index refresh, cap counts, CTR model."""
