"""The nouns as one document: export, and import as a whole or not at all."""
