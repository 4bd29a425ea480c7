"""The site actor: what a site is like and what its pages are about, told to whoever sells them."""
