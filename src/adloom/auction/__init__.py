"""What an ad is worth to who pays for it, and what it pays when it wins. Pure."""
