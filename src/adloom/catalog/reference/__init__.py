"""Records of the shop that banners may name: brands, categories, products, SEO records."""
