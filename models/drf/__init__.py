"""Dominant Resource Fairness (NSDI 2011): max-min fairness of each user's largest share of any resource."""
