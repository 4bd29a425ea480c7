"""Why a candidate was shown or not, in words for the people who manage campaigns."""
