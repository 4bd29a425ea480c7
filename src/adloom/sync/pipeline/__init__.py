"""From what was fetched to what counts: raw rows, daily figures, figures of sell pages."""
