"""What a change of one campaign would bring, from a copy of the running installation, within ten seconds."""
