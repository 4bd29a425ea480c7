"""Ad sets of campaigns."""
