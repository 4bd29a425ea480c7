"""Who shows what where: links and assignments of all campaigns, with the names of what they join."""
