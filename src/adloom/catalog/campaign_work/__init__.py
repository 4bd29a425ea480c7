"""Work on campaigns as a whole: copies of one, and changes of many."""
