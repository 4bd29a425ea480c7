"""What people configure: who may show what, where and when. Only the admin API writes it."""
