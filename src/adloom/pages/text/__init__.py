"""From HTML to what the page says: its main text, title, description, language and links."""
