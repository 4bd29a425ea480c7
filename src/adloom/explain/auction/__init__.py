"""Why an ad won an auction or not, and what it would have had to bid."""
