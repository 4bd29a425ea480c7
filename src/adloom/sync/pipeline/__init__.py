"""From fetched rows to daily figures and figures of sell pages."""
