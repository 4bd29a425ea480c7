"""Stats sync: what ad platforms say that campaigns cost and brought, kept, added up and reported."""
