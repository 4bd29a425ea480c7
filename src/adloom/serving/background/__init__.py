"""Background work of a delivery process: index refresh, cap counts, CTR model, site tables, API keys, traffic counts."""
