"""What publishers say of the banners that want to be shown on their sites."""
