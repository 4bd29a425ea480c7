"""Learning CTRs from the ledger: impressions of auctions wait for their clicks, and then move the weights."""
