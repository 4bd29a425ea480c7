"""The pages of the console. Each module registers its pages with `console.page`."""
