"""How good predicted CTRs are, on traffic whose true CTRs are known; and what a prediction costs."""
