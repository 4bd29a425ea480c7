"""What every noun shares: a declaration that serves its table, routes, answers, history, import and export."""
