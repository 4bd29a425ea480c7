"""The figures of campaigns, as a list shows them."""
