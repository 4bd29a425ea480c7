"""The quality of predicted CTRs on traffic with known true CTRs, and the cost of a prediction."""
