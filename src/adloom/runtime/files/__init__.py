"""Files that people upload: in a folder, or in an S3-compatible store."""
