"""The strategies of all campaigns' bids, run at once beside their actors."""
