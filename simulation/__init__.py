"""The product on virtual time, with visitors, crashes and lost messages; the same seed gives the same run."""
