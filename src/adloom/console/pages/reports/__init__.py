"""Reports: statistics by any dimension, and those of ad accounts elsewhere."""
