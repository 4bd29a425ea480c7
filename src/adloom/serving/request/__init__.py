"""What is known about a request: context, device, overrides, rate limit."""
