"""The pages of the sample: a magazine and a shop, with slots for ads."""
