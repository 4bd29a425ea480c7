"""`adloom learn`: training of bid strategies, on recorded days or on own auctions."""
