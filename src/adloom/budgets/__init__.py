"""Budget actors: campaigns and advertisers that own money. Their steps are pure; a host runs them."""
