"""The pages of banners."""
