"""Classifying the pages of a site again, when the classifier has become another."""
