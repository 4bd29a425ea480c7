"""Single sign-on by OpenID Connect: authorisation code with PKCE, and accounts that follow from it."""
