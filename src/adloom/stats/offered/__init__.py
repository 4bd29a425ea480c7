"""The placements that a campaign can ask for, as a buyer sees them."""
