"""The largest common level that all users can reach: prices of the types, with bounds."""
