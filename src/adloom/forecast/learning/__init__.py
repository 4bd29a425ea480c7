"""What learns in a simulated market: the click model of auctions."""
