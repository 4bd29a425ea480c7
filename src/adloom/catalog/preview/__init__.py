"""Preview links: one banner in one placement of a real page, for whoever opens the link. Nothing of it counts."""
