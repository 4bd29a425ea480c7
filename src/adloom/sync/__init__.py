"""Stats sync: fetch the statistics of ad accounts on other platforms, store them, add them up and report them."""
