"""Water filling by prices: the largest common level, round by round."""
