"""Reports: own statistics by any dimension, and statistics of external ad accounts."""
