"""Contextual slots of a simulated market: page auctions by the real actors, and the real choice of creatives."""
