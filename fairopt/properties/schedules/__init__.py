"""Properties of plans: what tenants gain, pay and could gain otherwise."""
