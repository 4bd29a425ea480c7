"""The taxonomies for clients, and the fields that name their nodes."""
