"""What publishers say of the banners that bid for their sites."""
