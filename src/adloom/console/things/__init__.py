"""What pages about one thing of the catalog share."""
