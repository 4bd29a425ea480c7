"""The HTTP layer of the control plane: middleware, errors, paging, OpenAPI."""
