"""The second factor of a log-in: codes of an app (TOTP), and recovery codes for when the app is lost."""
