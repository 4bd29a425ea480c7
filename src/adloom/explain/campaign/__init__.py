"""Why a campaign does not deliver: what keeps it from it now, and what happened recently."""
