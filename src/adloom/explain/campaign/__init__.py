"""Why a campaign does not deliver: what stands in its way now, and what happened to it lately."""
