"""Which of several banners is clicked more often, and how sure that is."""
