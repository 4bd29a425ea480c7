"""How costs grow with the index: decisions, answers, memory and changes, from 1,000 to 100,000 campaigns."""
