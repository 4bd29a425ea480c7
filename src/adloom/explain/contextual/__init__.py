"""Why a contextual slot of a page is filled as it is."""
