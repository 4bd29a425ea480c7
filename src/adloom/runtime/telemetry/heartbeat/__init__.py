"""What processes tell of themselves every second, for whoever asks how the whole is doing."""
