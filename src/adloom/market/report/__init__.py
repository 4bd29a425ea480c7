"""What people see of a site's market: demand, results and floors by category."""
