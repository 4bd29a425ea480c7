"""HTTP at the edge: the protocol of the delivery plane, its limits, and errors as problem details."""
