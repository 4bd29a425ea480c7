"""How the index grows: what a decision, an answer, memory and a change cost, from 1,000 campaigns to 100,000."""
