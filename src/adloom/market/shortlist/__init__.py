"""What may fill the slots of a page, as auctioneers write it and delivery reads it."""
