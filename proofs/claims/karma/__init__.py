"""What the Karma paper and its published library claim."""
