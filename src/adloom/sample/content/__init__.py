"""What the sample consists of: its catalog, articles and products as data, and pictures drawn from parameters."""
