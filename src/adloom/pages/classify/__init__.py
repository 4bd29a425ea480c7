"""From a page's text to what it is about: the request, the queue, the classifiers."""
