"""The pages of the console; each file registers its own with `console.page`."""
