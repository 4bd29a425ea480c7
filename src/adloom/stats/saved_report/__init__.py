"""Saved reports: a question with a name, and its e-mails."""
