"""The product on virtual time, with readers, crashes and lost messages; the same seed gives the same run."""
