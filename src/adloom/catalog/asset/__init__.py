"""Assets: pictures, videos and HTML5 creatives that people upload."""
