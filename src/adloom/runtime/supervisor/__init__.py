"""Child processes that are kept alive, and that never outlive the process that keeps them."""
