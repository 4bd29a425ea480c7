"""What is kept of a reader, for whoever asks what that is, or to have it erased."""
