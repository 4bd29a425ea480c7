"""Why a candidate was shown or not, for the people who manage campaigns."""
