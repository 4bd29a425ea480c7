"""PostgreSQL and Valkey from wheels, for machines where nobody has installed them."""
