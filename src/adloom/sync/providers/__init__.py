"""Where statistics come from: one provider a platform, all behind one protocol."""
