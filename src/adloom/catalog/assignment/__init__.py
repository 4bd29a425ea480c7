"""Where campaigns show their banners: links to placements, and assignments of banners to links."""
