"""The traffic of sites: how much comes in each hour, and the shape of a day that is learned from it."""
