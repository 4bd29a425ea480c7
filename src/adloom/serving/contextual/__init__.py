"""Contextual slots: look the page up, choose ads for it, price and answer; take the text of an unknown page."""
