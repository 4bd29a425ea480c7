"""The pages of advertisers."""
