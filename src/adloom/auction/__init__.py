"""What a bid is worth, what the winner pays, and how likely a click is. Pure."""
