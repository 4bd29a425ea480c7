"""The HTTP protocol of the delivery plane: fast routes answered without a framework."""
