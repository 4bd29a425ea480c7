"""Learning click-through rates from the event log: impressions of auctions wait for clicks, then train the model."""
